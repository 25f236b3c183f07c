"""Every name that the plane gives to something, made from a few facts and read back from them.

Names are deterministic, so that a repeated event finds what an earlier one made instead of making it again.
The rules for run ids, job keys and platform ids are the ones that workers and users' queries already depend
on; nonces, request ids, cluster and disk names are the plane's own.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

FAMILIES = ("statistical", "ml", "deep_learning", "native", "ensemble", "automl")
TASK = "task"
"""The family token of a plain container task: it has job keys like a forecast's families, and no models."""

Stage = Literal["started", "terminal"]

_REPAIR_SUFFIX = "_repair"
# An ensemble is made again from its members' cells, so there is nothing to repair in it.
_UNREPAIRABLE = frozenset({"ensemble"})
_REPAIR_TOKENS = tuple(f + _REPAIR_SUFFIX for f in FAMILIES if f not in _UNREPAIRABLE)
JOB_TOKENS = frozenset({*FAMILIES, *_REPAIR_TOKENS, TASK})

# One path segment and no separator: a job key is a folder of the status bucket and a document id.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
# Anchored at the end: a run id has hyphens of its own, tokens and attempts have none.
_JOB_KEY = re.compile(
    r"sf-(?P<run_id>[A-Za-z0-9][A-Za-z0-9-]*)-(?P<family>[a-z_]+)-a(?P<attempt>[1-9][0-9]{0,5})"
)
_MARKER = re.compile(
    r"runs/status/(?P<job_key>[^/]+)/(?P<nonce>[0-9a-f]{16})/(?P<index>0|[1-9][0-9]{0,5}|job)\.(?P<stage>started|terminal)\.json"
)
_WHOLE_JOB = "job"

_SEPARATOR = "\x1f"
_REQUESTS = uuid.UUID("7d1bb2ad-9a6f-5b0e-8d0c-3a1c5f3c6e52")
"""Namespace of request ids. Changing it would let a repeated insert be taken for a new one."""

_GCE_LIMIT = 63
# A pod of an Indexed Job adds `-<index>-<5 characters>` to the Job's name and must stay within 63.
_GKE_JOB_LIMIT = 52
_CLUSTER_LIMIT = 40
_RAY_LIMIT = 53
_DISK_STEM = 54


@dataclass(frozen=True, kw_only=True, slots=True)
class JobKey:
    """A job key taken apart. `family` may be a repair token or `task`."""

    run_id: str
    family: str
    attempt: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkerName:
    """What the path of a marker object says. Authority lies in the path, never in the object's body.

    `index` is the worker's; None stands for the whole job, of which only the plane speaks.
    """

    job_key: str
    nonce: str
    index: int | None
    stage: Stage


def slug(name: str) -> str:
    """Return `name` in lower case, other characters than a-z and 0-9 as hyphens; `run` if nothing is left."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"


def canonical_json(document: Mapping[str, Any]) -> str:
    """Return `document` as JSON that is the same text for equal content, whatever the order of its keys."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def run_id(run_name: str, canonical: Mapping[str, Any]) -> str:
    """Return `<slug>-<12 hex digits>`: the digest of the canonical config tells runs of one name apart."""
    return f"{slug(run_name)}-{_digest(canonical_json(canonical), 12)}"


def job_key(run_id: str, family: str, attempt: int) -> str:
    """Return `sf-<run_id>-<family>-a<attempt>`.

    Raises ValueError for an unknown family, attempt 0 or a foreign run id.
    """
    if family not in JOB_TOKENS:
        raise ValueError(f"unknown job family {family!r}: use one of {', '.join(sorted(JOB_TOKENS))}")
    if attempt < 1:
        raise ValueError(f"attempt must be >= 1, not {attempt}")
    if not _RUN_ID.fullmatch(run_id):
        raise ValueError(
            f"{run_id!r} is no run id: only letters, digits and hyphens, a letter or digit first"
        )
    return f"sf-{run_id}-{family}-a{attempt}"


def parse_job_key(text: str) -> JobKey | None:
    """Take a job key apart; None when `text` is not one."""
    match = _JOB_KEY.fullmatch(text)
    if match is None or match["family"] not in JOB_TOKENS:
        return None
    return JobKey(run_id=match["run_id"], family=match["family"], attempt=int(match["attempt"]))


def base_family(token: str) -> str:
    """Return the family of a job token: `ml` for `ml` and `ml_repair`. Raises ValueError for other words."""
    if token not in JOB_TOKENS:
        raise ValueError(f"unknown job family {token!r}")
    return token.removesuffix(_REPAIR_SUFFIX)


def repair_token(family: str) -> str:
    """Return the token of a family's repair jobs; ValueError where there is none. A repair token stays.

    The plane retries under a new attempt and starts no repair jobs itself: those who do name them by this.
    """
    token = base_family(family) + _REPAIR_SUFFIX
    if token not in JOB_TOKENS:
        raise ValueError(f"family {family!r} has no repair token")
    return token


def next_attempt(latest: int | None, *, force: bool) -> tuple[int, bool]:
    """Return the attempt to use and whether it is new: the latest is used again unless one is forced."""
    if latest is None:
        return 1, True
    return (latest + 1, True) if force else (latest, False)


def gce_instance_id(key: str) -> str:
    """Return the VM name for a job key: RFC 1035, at most 63 characters; the tail of a long key is kept."""
    return _platform_id(key, _GCE_LIMIT)


def gke_job_id(key: str) -> str:
    """Return the Kubernetes Job name for a job key: at most 52 characters; the tail of a long key is kept."""
    return _platform_id(key, _GKE_JOB_LIMIT)


def cluster_name(key: str) -> str:
    """Return the name of a job's own cluster, at most 40 characters.

    Every name that differs from its key ends in 8 hex digits of the key's SHA-256, so that cutting cannot
    give two jobs one cluster.
    """
    legal = _platform_id(key, len(key) + 2)
    if legal == key and len(key) <= _CLUSTER_LIMIT:
        return key
    return _with_suffix(legal, _digest(key, 8), _CLUSTER_LIMIT - 9)


def ray_cluster_name(run_id: str) -> str:
    """Return the name of a run's Ray cluster, at most 53 characters, which is what KubeRay takes.

    A name that would have to be cut or changed ends in 8 hex digits of the run id's SHA-256.
    """
    whole = f"sf-ray-{run_id}"
    legal = _platform_id(whole, len(whole) + 2)
    if legal == whole and len(whole) <= _RAY_LIMIT:
        return whole
    return _with_suffix(legal, _digest(run_id, 8), _RAY_LIMIT - 9)


def key_digest(job_key: str) -> str:
    """Return the 16 hex digits by which a resource's `sf-key` label and a job's `key` find each other."""
    return _digest(job_key, 16)


def nonce(job_key: str, placement: int, try_number: int) -> str:
    """Return the 16 hex digits that tell this try to create a worker from every other one of the job."""
    return _digest(_SEPARATOR.join((job_key, str(placement), str(try_number))), 16)


def request_uuid(job_key: str, attempt: int, placement: int, try_number: int) -> str:
    """Return the `requestId` of a create: the API answers a repeat of it with the same operation."""
    name = _SEPARATOR.join((job_key, str(attempt), str(placement), str(try_number)))
    return str(uuid.uuid5(_REQUESTS, name))


def request_document_id(request_id: str) -> str:
    """Return the id of a request's document: 32 hex digits, whatever characters the caller chose."""
    return _digest(request_id, 32)


def claim_id(run_id: str, published_at: datetime, every: timedelta) -> str:
    """Return the claim that one attempt per period makes: `<run_id>-<number of the period since 1970>`."""
    period = int(published_at.timestamp() // every.total_seconds())
    return f"{run_id}-{period}"


def disk_name(instance: str, nonce: str) -> str:
    """Return a boot disk's name.

    It is tied to the try, because a disk of the VM's name would be attached silently.
    """
    return _with_suffix(instance, nonce[:8], _DISK_STEM)


def marker_prefix(job_key: str, nonce: str) -> str:
    """Return the folder of one try's markers in the status bucket, with its final slash."""
    return f"runs/status/{job_key}/{nonce}/"


def marker_object(job_key: str, nonce: str, index: int | None, stage: Stage) -> str:
    """Return the object name of one worker's started or terminal marker; without an index, of the whole job's."""
    return f"{marker_prefix(job_key, nonce)}{_WHOLE_JOB if index is None else index}.{stage}.json"


def parse_marker_object(name: str) -> MarkerName | None:
    """Take the object name of a marker apart; None for anything that `marker_object` does not make."""
    match = _MARKER.fullmatch(name)
    if match is None or parse_job_key(match["job_key"]) is None:
        return None
    stage: Stage = "started" if match["stage"] == "started" else "terminal"
    index = None if match["index"] == _WHOLE_JOB else int(match["index"])
    return MarkerName(job_key=match["job_key"], nonce=match["nonce"], index=index, stage=stage)


def gce_status_object(instance: str) -> str:
    """Return the object that older readers look at for a VM's end; the plane itself never reads it."""
    return f"runs/gce-status/{instance}.json"


def config_uri(code_bucket: str, run_id: str) -> str:
    """Return where a run's config lies for its workers."""
    return f"gs://{code_bucket}/runs/{run_id}.json"


def label_value(text: str) -> str:
    """Return `text` as a value of at most 63 characters that Compute Engine and Kubernetes labels take."""
    return re.sub(r"[^a-z0-9_-]", "-", text.lower())[:63].strip("-_")


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _platform_id(key: str, limit: int) -> str:
    """Make an RFC 1035 label of `key`. The tail is kept: digest, family and attempt stand there."""
    name = re.sub(r"[^a-z0-9-]", "-", key.lower()).strip("-")
    if len(name) > limit:
        name = "sf-" + name[3 - limit :].lstrip("-")
    if not name[:1].isalpha():
        name = f"j-{name}"[:limit]
    return name.rstrip("-")


def _with_suffix(name: str, suffix: str, stem: int) -> str:
    return f"{name[:stem].rstrip('-')}-{suffix}"
