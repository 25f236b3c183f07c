"""Resumable uploads: bodies that arrive in pieces, and say on demand how far they got."""

from __future__ import annotations

from dataclasses import replace

from runtender.local.http import HttpRequest, HttpResponse, json_response
from runtender.local.objects.answers import invalid, no_such_upload, own_address
from runtender.local.objects.uploads import Chunk, Session, chunk_of, header_hashes, resumable_upload

# Sessions live a week at Google. Here the oldest goes when somebody leaves this many behind.
_MOST_SESSIONS = 1000
_RESUME_INCOMPLETE = 308


class Sessions:
    """The uploads under way, by their id."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._begun = 0

    def begin(self, request: HttpRequest) -> Session:
        """Open a session for the object that `request` describes."""
        self._begun += 1
        session = Session(id=f"upload-{self._begun}", upload=resumable_upload(request))
        self._sessions[session.id] = session
        if len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return session

    def location(self, request: HttpRequest, session: Session) -> HttpResponse:
        """Tell the uploader where to send the pieces."""
        url = f"{own_address(request)}{request.path}?uploadType=resumable&upload_id={session.id}"
        return HttpResponse(status=200, headers={"Location": url, "X-GUploader-UploadID": session.id})

    def resume(self, request: HttpRequest) -> Session:
        """Take the piece in `request` into its session and return that."""
        session = self._sessions.get(request.query.get("upload_id", ""))
        if session is None:
            raise no_such_upload()
        if session.resource is None:
            _take(session, chunk_of(request), request)
        return session

    def progress(self, session: Session) -> HttpResponse:
        """Answer with the stored object, or with how much of it is here."""
        if session.resource is not None:
            return json_response(200, session.resource)
        headers = {"Range": f"bytes=0-{len(session.received) - 1}"} if session.received else {}
        return HttpResponse(status=_RESUME_INCOMPLETE, headers=headers)


def _take(session: Session, chunk: Chunk, request: HttpRequest) -> None:
    if hashes := header_hashes(request):
        claimed = {**session.upload.claimed, **hashes}
        session.upload = replace(session.upload, claimed=claimed)
    if chunk.start is not None:
        known = len(session.received) - chunk.start
        if known < 0:
            raise invalid(
                f"The piece begins at {chunk.start}, but only {len(session.received)} bytes are here."
            )
        # An uploader that lost an answer sends again what is here already.
        session.received += request.body[known:]
    if chunk.total is not None and len(session.received) == chunk.total:
        session.complete = True
