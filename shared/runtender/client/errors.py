"""What a client of the plane can be told beside a refusal of its own input, which is `Rejected`."""

from __future__ import annotations

from runtender.errors import RuntenderError


class ClientError(RuntenderError):
    """The plane cannot be asked from here; the message says what to do."""


class UnknownRun(ClientError):
    """There is no run of that id on this plane."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id!r} is not known here; 'runtender list' shows the runs that are")
        self.run_id = run_id


class NoAnswer(ClientError):
    """A request is published, and the plane has not answered it yet. It is safe to send it again under its id."""

    def __init__(self, request_id: str, waited_s: float) -> None:
        super().__init__(
            f"request {request_id} is published, but the plane has not answered within {waited_s:.0f} s; "
            "it will as soon as its functions run. What keeps them: 'runtender doctor' looks at a deployed plane, "
            "'runtender local status' and the logs in .runtender/logs at a local one (a full disk stops it without a word)"
        )
        self.request_id = request_id
