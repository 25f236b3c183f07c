"""What answers are made of: the service's own address, and refusals in Cloud Storage's words and shapes."""

from __future__ import annotations

from runtender.local.http import HttpRequest, HttpResponse, google_error


def own_address(request: HttpRequest) -> str:
    """Return the address the caller reached the service at: links in answers must work for that caller."""
    host = request.headers.get("Host", "storage.googleapis.com")
    # Under its own name the service is reached over TLS, under a loopback address without.
    return f"{'https' if host.endswith('.googleapis.com') else 'http'}://{host}"


class Refused(Exception):
    """A call ends here with `answer`. Never leaves the simulated service."""

    def __init__(self, answer: HttpResponse) -> None:
        super().__init__(f"HTTP {answer.status}")
        self.answer = answer


def no_such_bucket() -> Refused:
    """Refuse a call to a bucket that is not there."""
    return Refused(google_error(404, "notFound", "The specified bucket does not exist."))


def no_such_object(bucket: str, name: str) -> Refused:
    """Refuse a call to an object or a generation that is not there."""
    return Refused(google_error(404, "notFound", f"No such object: {bucket}/{name}"))


def no_such_upload() -> Refused:
    """Refuse a chunk of an upload that nobody began."""
    return Refused(google_error(404, "notFound", "No such upload session."))


def precondition_failed() -> Refused:
    """Refuse a call whose precondition does not hold."""
    return Refused(
        google_error(
            412,
            "conditionNotMet",
            "At least one of the pre-conditions you specified did not hold.",
            locationType="header",
            location="If-Match",
        )
    )


def not_modified() -> Refused:
    """Answer a read whose `NotMatch` precondition does not hold: the caller has that version."""
    return Refused(HttpResponse(status=304))


def may_not_delete(caller: str, bucket: str, name: str) -> Refused:
    """Refuse a delete, or an overwrite, to a caller who may only create and read."""
    return Refused(
        google_error(
            403,
            "forbidden",
            f"{caller} does not have storage.objects.delete access to the Google Cloud Storage object. "
            f"Permission 'storage.objects.delete' denied on resource '{bucket}/{name}' "
            "(or it may not exist).",
        )
    )


def invalid(problem: str) -> Refused:
    """Refuse a malformed call."""
    return Refused(google_error(400, "invalid", problem))


def bucket_exists() -> Refused:
    """Refuse to make a bucket twice."""
    return Refused(
        google_error(
            409,
            "conflict",
            "Your previous request to create the named bucket succeeded and you already own it.",
        )
    )


def range_not_satisfiable(size: int) -> Refused:
    """Refuse a read that begins behind the object's end."""
    answer = google_error(416, "requestedRangeNotSatisfiable", "Request range not satisfiable")
    return Refused(
        HttpResponse(
            status=416, headers={**answer.headers, "Content-Range": f"bytes */{size}"}, body=answer.body
        )
    )
