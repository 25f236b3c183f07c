"""Messages of the submit topic: bytes -> a validated `SubmitRequest`, every fault named with its field and a remedy.

The run config inside is taken as JSON here and validated by the planner, which knows its fields.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from runtender.errors import Fault, Rejected
from runtender.ids import parse_job_key
from runtender.model import Limits, SubmitAction, SubmitKind, SubmitRequest
from runtender.wire.durations import parse_duration
from runtender.wire.json_input import read_json_object

MAX_MESSAGE_BYTES = 512 * 1024
MAX_INLINE_CONFIG_BYTES = 256 * 1024

OVERRIDES: Mapping[str, type] = {
    "hardware": str,
    "gpu_type": str,
    "machine_type": str,
    "accelerator_count": int,
    "workers": int,
    "spot": bool,
    "gke_mode": str,
    "cluster_name": str,
    "cluster_location": str,
    "keep_cluster": bool,
}
KEYS = (
    "action", "kind", "request_id", "run_id", "job_key", "config", "config_uri", "families", "models", "overrides",
    "force", "every", "labels", "limits", "image", "package_uri", "entrypoint", "priority", "requested_by",
)  # fmt: skip
LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_OWN_LABELS = ("sf-", "goog")
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
MAX_RUN_ID = 200
ENTRYPOINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
MAX_PRIORITY = 100
MAX_LABELS = 32
MAX_REQUEST_ID = 512


def parse_submit(body: bytes, *, message_id: str, published_at: datetime) -> SubmitRequest:
    """Read a submit message; raises `Rejected` with all its faults."""
    data = _json_object(body)
    check = _Checker(data)
    check.no_unknown_keys()
    action = check.member("action", SubmitAction, SubmitAction.SUBMIT)
    request = SubmitRequest(
        action=action,
        kind=check.member("kind", SubmitKind, SubmitKind.FORECAST),
        request_id=check.text("request_id", longest=MAX_REQUEST_ID) or message_id,
        message_id=message_id,
        published_at=published_at,
        run_id=check.run_id(),
        job_key=check.job_key(),
        config=check.config(),
        config_uri=check.uri("config_uri"),
        families=check.names("families"),
        models=check.names("models"),
        overrides=check.overrides(),
        force=check.truth("force"),
        every=check.duration("every", data.get("every")),
        labels=check.labels(),
        limits=check.limits(),
        image=check.text("image"),
        package_uri=check.uri("package_uri"),
        entrypoint=check.entrypoint(),
        priority=check.priority(),
        requested_by=check.text("requested_by") or "",
    )
    check.what_the_action_needs(request)
    check.finish()
    return request


def peek_request_id(body: bytes) -> str | None:
    """Return the message's own request id where it has a usable one, so that even a rejected message gets its row."""
    try:
        data = _json_object(body)
    except Rejected:
        return None
    value = data.get("request_id")
    return value if isinstance(value, str) and 0 < len(value) <= MAX_REQUEST_ID else None


def _json_object(body: bytes) -> Mapping[str, Any]:
    if len(body) > MAX_MESSAGE_BYTES:
        raise Rejected.because(
            "message",
            f"{len(body):,} bytes are more than the {MAX_MESSAGE_BYTES:,} an event can carry",
            "store the config in Cloud Storage and send `config_uri`",
        )
    try:
        return read_json_object(body)
    except ValueError as error:
        raise Rejected.because("message", f"is no JSON object: {error}", "send one JSON object") from error


@dataclass(slots=True)
class _Checker:
    """Reads fields one by one and keeps every fault, so that the sender hears of all of them at once."""

    data: Mapping[str, Any]
    faults: list[Fault]

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.faults = []

    def fault(self, field: str, problem: str, remedy: str = "") -> None:
        self.faults.append(Fault(field=field, problem=problem, remedy=remedy))

    def no_unknown_keys(self, where: str = "", known: tuple[str, ...] = KEYS) -> None:
        data = self.data[where] if where else self.data
        for key in data:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                remedy = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
                self.fault(f"{where}.{key}" if where else key, "is not a known key", remedy)

    def text(self, key: str, longest: int = 2048) -> str | None:
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not 0 < len(value) <= longest:
            self.fault(key, f"{_shown(value)} is not a text of 1 to {longest} characters", "write a string")
            return None
        return value

    def uri(self, key: str) -> str | None:
        value = self.text(key)
        if value is not None and not re.fullmatch(r"gs://[^/]+/.+", value):
            self.fault(key, f"{_shown(value)} is not a Cloud Storage URI", "write gs://bucket/object")
        return value

    def run_id(self) -> str | None:
        value = self.text("run_id", longest=MAX_RUN_ID)
        if value is not None and not RUN_ID.fullmatch(value):
            self.fault("run_id", f"{_shown(value)} is not a run id", "see `runtender list`")
            return None
        return value

    def job_key(self) -> str | None:
        value = self.text("job_key")
        if value is not None and parse_job_key(value) is None:
            self.fault(
                "job_key", f"{_shown(value)} is not a job key", "write sf-<run id>-<family>-a<attempt>"
            )
            return None
        return value

    def entrypoint(self) -> str | None:
        value = self.text("entrypoint")
        if value is not None and not ENTRYPOINT.fullmatch(value):
            self.fault(
                "entrypoint", f"{_shown(value)} is not an entry point", "write package.module:function"
            )
        return value

    def member(self, key: str, kind: Callable[[Any], Any], default: Any) -> Any:
        value = self.data.get(key, default)
        try:
            return kind(value)
        except ValueError:
            known = ", ".join(kind.__members__[name].value for name in kind.__members__)  # type: ignore[attr-defined]
            self.fault(key, f"{_shown(value)} is not known", f"use one of {known}")
            return default

    def truth(self, key: str) -> bool:
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.fault(key, f"{_shown(value)} is not a truth value", "write true or false")
            return False
        return value

    def priority(self) -> int:
        value = self.data.get("priority", 0)
        if type(value) is not int or abs(value) > MAX_PRIORITY:
            problem = f"{_shown(value)} is not a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}"
            self.fault("priority", problem, "leave it out for 0")
            return 0
        return value

    def names(self, key: str) -> tuple[str, ...]:
        value = self.data.get(key)
        if value is None:
            return ()
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(item, str) and item for item in value)
        ):
            self.fault(
                key,
                f"{_shown(value)} is not a list of names",
                'write e.g. ["theta", "autoets"], or leave it out',
            )
            return ()
        return tuple(dict.fromkeys(value))

    def duration(self, field: str, value: Any) -> timedelta | None:
        if value is None:
            return None
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fault(field, str(error))
            return None

    def mapping(self, key: str) -> Mapping[str, Any]:
        value = self.data.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fault(key, f"{_shown(value)} is not an object", "write a JSON object")
            return {}
        return value

    def config(self) -> Mapping[str, Any] | None:
        value = self.mapping("config") if self.data.get("config") is not None else None
        if value and len(json.dumps(value, separators=(",", ":"))) > MAX_INLINE_CONFIG_BYTES:
            self.fault("config", "is larger than 256 KiB", "store it in Cloud Storage and send `config_uri`")
        return value

    def labels(self) -> Mapping[str, str]:
        labels = self.mapping("labels")
        for key, value in labels.items():
            if not LABEL_KEY.fullmatch(key) or key.startswith(_OWN_LABELS):
                self.fault(
                    f"labels.{key}",
                    "is not a label key",
                    "use a-z, 0-9, _ and -, letter first; sf- and goog are reserved",
                )
            if not isinstance(value, str) or not LABEL_VALUE.fullmatch(value):
                self.fault(
                    f"labels.{key}",
                    f"{_shown(value)} is not a label value",
                    "use at most 63 of a-z, 0-9, _ and -",
                )
        if len(labels) > MAX_LABELS:
            self.fault("labels", f"{len(labels)} are too many", f"give at most {MAX_LABELS}")
        return labels

    def limits(self) -> Limits:
        limits = self.mapping("limits")
        if limits:
            self.no_unknown_keys("limits", ("capacity_wait", "run", "cost_usd"))
        cost = limits.get("cost_usd")
        if cost is not None and (
            isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 < cost < 1e9
        ):
            self.fault(
                "limits.cost_usd", f"{_shown(cost)} is not an amount", "write a number of US dollars above 0"
            )
            cost = None
        return Limits(
            capacity_wait=self.duration("limits.capacity_wait", limits.get("capacity_wait")),
            run=self.duration("limits.run", limits.get("run")),
            cost_usd=None if cost is None else float(cost),
        )

    def overrides(self) -> Mapping[str, Mapping[str, Any]]:
        overrides = self.mapping("overrides")
        for family, fields in overrides.items():
            if not isinstance(fields, dict):
                self.fault(
                    f"overrides.{family}", f"{_shown(fields)} is not an object", "write {field: value}"
                )
                continue
            for key, value in fields.items():
                self._override(f"overrides.{family}.{key}", key, value)
        return {family: fields for family, fields in overrides.items() if isinstance(fields, dict)}

    def _override(self, field: str, key: str, value: Any) -> None:
        kind = OVERRIDES.get(key)
        if kind is None:
            near = difflib.get_close_matches(key, OVERRIDES, n=1)
            self.fault(
                field,
                "is not a known key",
                f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(OVERRIDES)}",
            )
        elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fault(field, f"{_shown(value)} has the wrong type", f"write a JSON {_JSON_NAME[kind]}")

    def what_the_action_needs(self, request: SubmitRequest) -> None:
        has_config = request.config is not None or request.config_uri is not None
        if request.action is SubmitAction.SUBMIT:
            if not has_config:
                self.fault(
                    "config", "is missing", "send the run config inline, or its gs:// URI as `config_uri`"
                )
            if "config" in self.data and "config_uri" in self.data:
                self.fault("config_uri", "is given beside `config`", "send one of the two")
            if request.every is not None and request.force:
                self.fault("force", "cannot be combined with `every`", "leave one of them out")
        elif request.action is SubmitAction.STEP:
            if "job_key" not in self.data:
                self.fault("job_key", "is missing", "name the job to look at")
        elif "run_id" not in self.data:
            self.fault("run_id", "is missing", f"name the run to {request.action}")

    def finish(self) -> None:
        if self.faults:
            raise Rejected(self.faults)


_JSON_NAME = {str: "string", int: "number", bool: "true or false"}


def _shown(value: Any) -> str:
    """A value as the sender wrote it, cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
