"""One frozen `Settings`, read once from `SF_*` variables.

A setting that is missing or unreadable is named with what to write. `SF_TIME_SCALE` (local cloud only) divides every span
alike, so that a day's run can be watched in minutes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta

from runtender.errors import Fault, Rejected
from runtender.model import LiveLimit, Timing

_SECONDS = {
    "SF_PROVISION_WAIT_S": "provision_wait",
    "SF_CREATE_GRACE_S": "create_grace",
    "SF_BOOT_LIMIT_S": "boot_limit",
    "SF_WATCH_INTERVAL_S": "watch_interval",
    "SF_ORPHAN_GRACE_S": "orphan_grace",
    "SF_PLACEMENT_BLOCK_S": "placement_block",
    "SF_STALL_GRACE_S": "stall_grace",
    "SF_TICK_BUDGET_S": "tick_budget",
    "SF_POD_TROUBLE_S": "pod_trouble",
}
# A handler that never waits is slow, and right; without a stall grace nothing is ever called stalled (spec gce.md 11). Any
# other span of zero and the plane looks at nothing, or at all always.
_MAY_BE_ZERO = frozenset({"SF_PROVISION_WAIT_S", "SF_STALL_GRACE_S"})
# What a handler waits for has to end well before the function's own time-out of 540 s.
_WITHIN_A_HANDLER = frozenset({"SF_PROVISION_WAIT_S", "SF_TICK_BUDGET_S"})
_LONGEST_HANDLER_WAIT_S = 450
# Compute Engine lets no machine live longer, so there is nothing longer to wait for.
_LONGEST_SPAN_S = 120 * 86400
_MOST_CREATES_PER_MINUTE = 1_000_000
SLOWEST, FASTEST = 0.01, 10_000.0
"""Time scales between which every span is still one: longer than a clock tick, shorter than the calendar."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]*")
_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]*(/.*)?")
_LABEL = re.compile(r"[a-z0-9_-]{1,63}")
_CLUSTER = re.compile(r"([a-z0-9-]{4,40}/)?[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_MOST_SHOWN = 60

# Kubernetes' own bound on the completions of a Job that has a policy per index.
_MOST_INDEXES = 100_000
_MOST_RETRIES = 10

_LIMITED = frozenset({"jobs", "vcpus", "gpus"})
_MOST_ALIVE = 1_000_000
# A registry, and as much of a path in it as is meant.
_IMAGES = re.compile(r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+)(:[0-9]+)?(/[a-z0-9._/-]*)?")
_KEY = re.compile(
    r"projects/[a-z0-9.:-]+/locations/([a-z0-9-]+|\{region\})/keyRings/[A-Za-z0-9_-]+/cryptoKeys/[A-Za-z0-9_-]+"
)
# A machine type, or `same`, and how it is sold.
_ALTERNATIVE = re.compile(r"[a-z][a-z0-9-]*( spot| standard)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The plane's configuration. Empty strings mean "not set" for what only some runs need."""

    project: str
    plane_id: str = "main"
    region: str = "us-central1"
    connection: str = ""
    warehouse_uri: str = ""
    dataset_id: str = "scale_forecasting"
    registry_dataset_id: str = ""
    code_bucket: str
    status_bucket: str
    cells_prefix: str
    container_image: str = ""
    image_allow: tuple[str, ...] = ()
    require_digest: bool = False
    package_uri: str = ""
    entrypoint: str = "scale_forecasting.vertex_entry:main"
    compute_sa: str = ""
    subnetwork_uri: str = ""
    kms_key: str = ""
    gke_cluster: str = ""
    gke_compute_class: str = ""
    gke_service_account: str = ""
    gke_index_retries: int = 0
    gke_max_failed_indexes: int | None = None
    compute_fallback: str = ""
    machines: str = ""
    prices: str = ""
    submit_topic: str = "sf-submit"
    tick_topic: str = "sf-tick"
    marker_topic: str = "sf-marker"
    dead_letter_topic: str = "sf-dead-letter"
    notify_topic: str = "sf-notify"
    guest_self_delete: bool = True
    run_limit: timedelta = timedelta(seconds=86400)
    api_budget: int = 1000
    live_limits: tuple[LiveLimit, ...] = ()
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backend: str = "google"
    time_scale: float = 1.0
    timing: Timing = Timing()

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        """Read the settings; raises `Rejected` naming every variable that is missing or wrong."""
        reader = _Reader(env)
        project = reader.required("SF_PROJECT_ID", "the Google Cloud project")
        reader.required("SF_CODE_BUCKET", "the bucket for code, configs and logs")
        code_bucket = reader.bucket("SF_CODE_BUCKET")
        warehouse = reader.folder("SF_WAREHOUSE_URI")
        dataset = reader.text("SF_DATASET_ID", "scale_forecasting")
        scale = reader.scale()
        timing = reader.timing()
        settings = cls(
            project=project,
            plane_id=reader.label("SF_PLANE_ID", "main"),
            region=reader.text("SF_REGION", "us-central1"),
            connection=reader.text("SF_CONNECTION"),
            warehouse_uri=warehouse,
            dataset_id=dataset,
            registry_dataset_id=reader.text("SF_REGISTRY_DATASET_ID"),
            code_bucket=code_bucket,
            status_bucket=reader.bucket("SF_STATUS_BUCKET") or code_bucket,
            cells_prefix=reader.folder("SF_CELLS_PREFIX").rstrip("/")
            or _cells_prefix(warehouse, code_bucket),
            container_image=reader.text("SF_CONTAINER_IMAGE"),
            image_allow=reader.images("SF_IMAGE_ALLOW"),
            require_digest=reader.truth("SF_REQUIRE_DIGEST", default=False),
            package_uri=reader.text("SF_PACKAGE_URI"),
            entrypoint=reader.text("SF_ENTRYPOINT", "scale_forecasting.vertex_entry:main"),
            compute_sa=reader.text("SF_COMPUTE_SA"),
            subnetwork_uri=reader.text("SF_SUBNETWORK_URI"),
            kms_key=reader.key("SF_KMS_KEY"),
            gke_cluster=reader.cluster("SF_GKE_CLUSTER"),
            gke_compute_class=reader.label("SF_GKE_COMPUTE_CLASS", ""),
            gke_service_account=reader.text("SF_GKE_SERVICE_ACCOUNT"),
            gke_index_retries=reader.whole("SF_GKE_INDEX_RETRIES", 0, least=0, most=_MOST_RETRIES),
            gke_max_failed_indexes=reader.whole_or_none("SF_GKE_MAX_FAILED_INDEXES", most=_MOST_INDEXES),
            compute_fallback=reader.text("SF_COMPUTE_FALLBACK"),
            machines=reader.text("SF_MACHINES"),
            prices=reader.text("SF_PRICES"),
            submit_topic=reader.text("SF_SUBMIT_TOPIC", "sf-submit"),
            tick_topic=reader.text("SF_TICK_TOPIC", "sf-tick"),
            marker_topic=reader.text("SF_MARKER_TOPIC", "sf-marker"),
            dead_letter_topic=reader.text("SF_DEAD_LETTER_TOPIC", "sf-dead-letter"),
            notify_topic=reader.text("SF_NOTIFY_TOPIC", "sf-notify"),
            guest_self_delete=reader.truth("SF_GUEST_SELF_DELETE", default=True),
            run_limit=timedelta(seconds=reader.seconds("SF_BATCH_JOB_WAIT_S", 86400)),
            api_budget=reader.whole("SF_API_BUDGET", 1000, most=_MOST_CREATES_PER_MINUTE),
            live_limits=reader.live_limits("SF_LIMITS"),
            alternatives=reader.alternatives("SF_ALTERNATIVES"),
            backend=reader.choice("SF_BACKEND", ("google", "embedded")),
            time_scale=scale,
            timing=timing,
        )
        reader.finish()
        return settings._scaled(scale) if scale != 1 else settings

    def _scaled(self, scale: float) -> Settings:
        spans = {f.name: getattr(self.timing, f.name) / scale for f in fields(Timing)}
        return replace(self, run_limit=self.run_limit / scale, timing=Timing(**spans))


def _cells_prefix(warehouse_uri: str, code_bucket: str) -> str:
    """`gs://<warehouse>/artifacts`; without a warehouse the results lie in the code bucket (apart from `runs/`)."""
    return f"{warehouse_uri.rstrip('/')}/artifacts" if warehouse_uri else f"gs://{code_bucket}/artifacts"


def _live_limit(raw: object) -> LiveLimit | None:
    """Return a limit as it is written; None for what is none."""
    if not isinstance(raw, dict) or not raw.keys() <= {"label", *_LIMITED} or not raw.keys() & _LIMITED:
        return None
    amounts = {name: raw[name] for name in _LIMITED & raw.keys()}
    label = raw.get("label", {"": ""})
    if not all(type(amount) is int and 0 <= amount <= _MOST_ALIVE for amount in amounts.values()):
        return None
    if (
        not isinstance(label, dict)
        or len(label) != 1
        or not all(isinstance(text, str) for text in label.values())
    ):
        return None
    return LiveLimit(label=next(iter(label.items())) if "label" in raw else None, **amounts)


class _Reader:
    """Collects every fault, so that one start names all that is wrong."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._faults: list[Fault] = []

    def text(self, name: str, default: str = "") -> str:
        return self._env.get(name, "").strip() or default

    def required(self, name: str, what: str) -> str:
        value = self.text(name)
        if not value:
            self._fault(name, "is not set", f"set it to {what}")
        return value

    def seconds(self, name: str, default: int) -> int:
        most = _LONGEST_HANDLER_WAIT_S if name in _WITHIN_A_HANDLER else _LONGEST_SPAN_S
        return self.whole(name, default, least=0 if name in _MAY_BE_ZERO else 1, most=most)

    def whole(self, name: str, default: int, *, least: int = 1, most: int) -> int:
        value = self.text(name, str(default))
        # More digits than `most` has are not read: Python itself refuses some thousands of them.
        if (
            value.isascii()
            and value.isdigit()
            and len(value) <= len(str(most))
            and least <= int(value) <= most
        ):
            return int(value)
        self._refuse(name, value, f"a whole number from {least} to {most}", f"write e.g. {default}")
        return default

    def whole_or_none(self, name: str, *, most: int) -> int | None:
        return self.whole(name, 0, least=0, most=most) if self.text(name) else None

    def truth(self, name: str, *, default: bool) -> bool:
        value = self.text(name).lower()
        if value in {"", "true", "1", "false", "0"}:
            return default if not value else value in {"true", "1"}
        self._refuse(name, value, "a truth value", "write true or false")
        return default

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name, allowed[0])
        if value not in allowed:
            self._refuse(name, value, "known", f"use one of {', '.join(allowed)}")
        return value

    def bucket(self, name: str) -> str:
        value = self.text(name)
        if value and not _BUCKET.fullmatch(value):
            self._refuse(name, value, "a bucket's name", "write the bare name, e.g. my-bucket")
        return value

    def folder(self, name: str) -> str:
        value = self.text(name)
        if value and not _FOLDER.fullmatch(value):
            self._refuse(name, value, "a Cloud Storage URI", "write gs://bucket/folder")
        return value

    def cluster(self, name: str) -> str:
        value = self.text(name)
        if value and not _CLUSTER.fullmatch(value):
            self._refuse(name, value, "a cluster's name", "write the bare name, or location/name")
        return value

    def label(self, name: str, default: str) -> str:
        value = self.text(name, default)
        if value and not _LABEL.fullmatch(value):
            self._refuse(name, value, "a label's value", "use at most 63 of a-z, 0-9, _ and -")
        return value

    def images(self, name: str) -> tuple[str, ...]:
        """Read `us-docker.pkg.dev/my-project, ghcr.io/my-team/`."""
        prefixes = tuple(filter(None, (part.strip() for part in self.text(name).split(","))))
        for prefix in prefixes:
            if not _IMAGES.fullmatch(prefix):
                self._refuse(
                    name, prefix, "a registry or a folder of one", "write e.g. us-docker.pkg.dev/my-project"
                )
        return prefixes

    def key(self, name: str) -> str:
        value = self.text(name)
        if value and not _KEY.fullmatch(value):
            example = "write projects/P/locations/{region}/keyRings/R/cryptoKeys/K"
            self._refuse(name, value, "the name of a key", example)
        return value

    def live_limits(self, name: str) -> tuple[LiveLimit, ...]:
        """Read `[{"jobs": 20}, {"label": {"team": "demand"}, "vcpus": 64, "gpus": 4}]`."""
        value = self.text(name, "[]")
        try:
            listed = json.loads(value)
        except ValueError:
            listed = None
        limits = [_live_limit(one) for one in listed] if isinstance(listed, list) else [None]
        known = tuple(limit for limit in limits if limit is not None)
        if len(known) < len(limits):
            example = 'write e.g. [{"jobs": 20}, {"label": {"team": "demand"}, "gpus": 4}]'
            self._refuse(name, value, "a list of limits on jobs, vcpus and gpus", example)
        return known

    def alternatives(self, name: str) -> Mapping[str, tuple[str, ...]]:
        """Read `{"n2-standard-8": ["n2d-standard-8", "same spot"], "*": ["same standard"]}`."""
        value = self.text(name, "{}")
        try:
            listed = json.loads(value)
        except ValueError:
            listed = None
        rows = listed.items() if isinstance(listed, dict) else [("", None)]
        known = {
            key: tuple(row)
            for key, row in rows
            if isinstance(row, list)
            and all(isinstance(one, str) and _ALTERNATIVE.fullmatch(one) for one in row)
        }
        if len(known) < len(rows):
            example = 'write e.g. {"n2-standard-8": ["n2d-standard-8", "same spot"]}'
            self._refuse(name, value, "a list of machines per machine type", example)
        return known

    def scale(self) -> float:
        value = self.text("SF_TIME_SCALE", "1")
        try:
            scale = float(value)
        except ValueError:
            scale = 0.0
        if not SLOWEST <= scale <= FASTEST:
            self._refuse("SF_TIME_SCALE", value, f"a number from {SLOWEST:g} to {FASTEST:g}", "write e.g. 20")
            return 1.0
        return scale

    def timing(self) -> Timing:
        default = Timing()
        spans = {
            field: timedelta(seconds=self.seconds(name, int(getattr(default, field).total_seconds())))
            for name, field in _SECONDS.items()
        }
        return replace(default, **spans)

    def _refuse(self, name: str, value: str, wanted: str, remedy: str) -> None:
        self._fault(name, f"{value[:_MOST_SHOWN]!r} is not {wanted}", remedy)

    def _fault(self, name: str, problem: str, remedy: str) -> None:
        self._faults.append(Fault(field=name, problem=problem, remedy=remedy))

    def finish(self) -> None:
        if self._faults:
            raise Rejected(self._faults)
