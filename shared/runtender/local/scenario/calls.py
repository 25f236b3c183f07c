"""A scenario's rules about API calls, as the simulated services consult them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from runtender.local.compute.routes import find_call
from runtender.local.compute.state import GUEST_TOKEN
from runtender.local.http import Fault, HttpRequest
from runtender.local.kubernetes.routes import Call
from runtender.local.kubernetes.routes import find_call as kubernetes_call
from runtender.local.objects.answers import Refused
from runtender.local.objects.uploads import metadata_of, multipart_upload
from runtender.local.scenario.answers import answer_to
from runtender.local.scenario.rules import Answer, Caller, CallRule
from runtender.local.scenario.turns import Turns

UPLOAD = "storage.objects.insert"


class CallFaults:
    """Says what becomes of a call: of the rules that match it, the first whose turn it is decides.

    `kill` kills the functions; `apply_later` lets a call take effect after a span.
    """

    def __init__(
        self,
        rules: Sequence[CallRule],
        *,
        elapsed: Callable[[], timedelta],
        kill: Callable[[], None],
        apply_later: Callable[[str, HttpRequest, timedelta], None],
    ) -> None:
        self._rules = tuple(rules)
        self._turns = Turns([rule.turn for rule in rules], elapsed)
        self._kill = kill
        self._apply_later = apply_later

    def __call__(self, method: str, request: HttpRequest) -> Fault | None:
        for index, rule in enumerate(self._rules):
            if _matches(rule, method, request) and self._turns.take(index):
                return self._fault(rule, method, request)
        return None

    def _fault(self, rule: CallRule, method: str, request: HttpRequest) -> Fault:
        if rule.answer is Answer.FUNCTIONS_KILLED:
            self._kill()
        if rule.late:
            self._apply_later(method, request, rule.late)
        return Fault(answer=answer_to(method, rule.answer), applied=rule.applied and not rule.late)


def caller_of(request: HttpRequest) -> Caller:
    """Return who sent a request, by its token."""
    by_guest = request.headers.get("Authorization", "").startswith(f"Bearer {GUEST_TOKEN}")
    return Caller.GUEST if by_guest else Caller.PLANE


def document_of(request: HttpRequest) -> Mapping[str, Any]:
    """Return a request's JSON object; empty where its body is none, which is for the service to refuse."""
    try:
        document = request.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def target_of(method: str, request: HttpRequest) -> str:
    """Return the name of the machine, disk, operation, object or Job that a call is about; empty where it has none."""
    if method.startswith("kubernetes."):
        return _kubernetes_name(request)
    if method.startswith("compute."):
        call = find_call(request)
        named = {} if call is None else call.parts
        return named.get("name") or str(document_of(request).get("name", ""))
    if method == UPLOAD:
        return request.query.get("name") or _upload_name(request)
    return request.segments[-1] if method.startswith("storage.objects.") else ""


def _matches(rule: CallRule, method: str, request: HttpRequest) -> bool:
    if rule.method != method or rule.by not in {None, caller_of(request)}:
        return False
    return fnmatchcase(target_of(method, request), rule.name)


def _kubernetes_name(request: HttpRequest) -> str:
    call = kubernetes_call(request)
    if not isinstance(call, Call):
        return ""
    return call.name or str(document_of(request).get("metadata", {}).get("name", ""))


def _upload_name(request: HttpRequest) -> str:
    try:
        match request.query.get("uploadType"):
            case "multipart":
                return multipart_upload(request)[0].name
            case "resumable" if request.method == "POST":
                return str(metadata_of(request.body).get("name", ""))
    except Refused:
        # Malformed, which is for the service to say.
        return ""
    return ""
