"""Renders the startup script of a VM: the template beside this file, with one try's facts put in as shell words.

The template is a whole script for shellcheck and for a reader. Each `@@NAME@@` in it stands for one word, or in an array
for several, and every word is quoted here; nothing else of the template changes.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping
from datetime import timedelta
from importlib.resources import files
from urllib.parse import quote

from runtender.ids import marker_object
from runtender.model import Job, JobPlan, Resource, SubmitKind
from runtender.redaction import sed_commands
from runtender.settings import Settings
from runtender.worker.secret_names import secret_version
from runtender.worker.source import bootstrap_source

_TEMPLATE = files(__package__).joinpath("gce_startup.sh").read_text(encoding="utf-8")
_JSON_TEXT = files(__package__).joinpath("gce_json_text.awk").read_text(encoding="utf-8")
_TOKEN = re.compile(r"@@([A-Z_]+)@@")
_REDACTION = [word for command in sed_commands() for word in ("-e", command)]

_PYTHON = "/opt/venv/bin/python"
_THREAD_CAPS = (
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

# Waits between tries of one call, in seconds; the last one repeats. Scaled like every other span.
_PAUSES_S = (1, 2, 4, 8, 16, 30)
_LOG_EVERY_S = 60.0
# The platform leaves a Spot VM 30 s: ten for the container to end in, the rest for what is to be told.
_STOP_GRACE_S = 10.0
_LAST_LOG_S = 30.0
_HURRIED_LOG_S = 8.0
# Below these a loaded machine misses time-outs that mean nothing.
_LEAST_CALL_S = 5.0


def startup_script(job: Job, row: Resource, settings: Settings) -> str:
    """Render the script for one try of a job. The same row always gives the same text."""
    words = {**_identity(job, row, settings), **_storage(job, row), **_container(job, row, settings.project)}
    words.update(_spans(settings), JSON_TEXT=[_JSON_TEXT], REDACTION=_REDACTION)
    return _TOKEN.sub(lambda match: shlex.join(words[match[1]]), _TEMPLATE)


def container_environment(job: Job, row: Resource, project: str) -> dict[str, str]:
    """Return what the worker is told, in the order it is passed. A plan may set the thread caps, never who it is."""
    plan = job.plan
    told = {
        "SF_VM_RUNTIME": plan.runtime,
        "SF_WORKER_RANK": "0",
        "SF_WORKER_COUNT": "1",
        **{cap: plan.env.get(cap, str(max(1, plan.slot_cores))) for cap in _THREAD_CAPS},
        "SF_PROJECT_ID": project,
        "SF_RUN_ID": job.run_id,
        "SF_JOB_KEY": job.job_key,
        "SF_NONCE": row.nonce,
        "SF_ATTEMPT": str(job.attempt),
        "SF_PLACEMENT": str(row.placement),
        "SF_STATUS_BUCKET": plan.status_bucket,
        "SF_CELLS_URI": _below(plan.cells_uri, row.nonce),
        "SF_LOGS_URI": _below(plan.logs_uri, row.nonce),
    }
    return told | {name: plan.env[name] for name in sorted(plan.env) if name not in told}


def container_command(plan: JobPlan) -> list[str]:
    """Return what the container runs: a task its own command, a forecast the bootstrap with the driver's arguments."""
    if plan.kind is SubmitKind.TASK:
        return [*plan.command, *plan.args]
    command = [_PYTHON, "-c", bootstrap_source(), "--package-uri", plan.package_uri]
    if plan.entrypoint:
        command += ["--entrypoint", plan.entrypoint]
    return [*command, *plan.driver_args]


def _identity(job: Job, row: Resource, settings: Settings) -> Mapping[str, list[str]]:
    return {
        "PROJECT": [settings.project],
        "ZONE": [row.location],
        "INSTANCE": [row.name],
        "NONCE": [row.nonce],
        "ATTEMPT": [str(job.attempt)],
        "PLACEMENT": [str(row.placement)],
        "SELF_DELETE": ["true" if settings.guest_self_delete else "false"],
    }


def _storage(job: Job, row: Resource) -> Mapping[str, list[str]]:
    bucket, _, folder = job.plan.logs_uri.removeprefix("gs://").partition("/")
    logs = f"{folder}/{row.nonce}/0." if bucket else ""
    return {
        "STATUS_BUCKET": [job.plan.status_bucket],
        "STARTED_OBJECT": [quote(marker_object(job.job_key, row.nonce, 0, "started"), safe="")],
        "TERMINAL_OBJECT": [quote(marker_object(job.job_key, row.nonce, 0, "terminal"), safe="")],
        "LOG_BUCKET": [bucket],
        "LOG_OBJECT": [quote(logs, safe="")],
        # Inside the quotes of a JSON string.
        "LOG_URI": [json.dumps(f"gs://{bucket}/{logs}" if bucket else "")[1:-1]],
    }


def _container(job: Job, row: Resource, project: str) -> Mapping[str, list[str]]:
    plan = job.plan
    environment = container_environment(job, row, project)
    return {
        "IMAGE": [plan.image_uri],
        "GPU_COUNT": [str(plan.accelerator_count if plan.accelerator_type else 0)],
        "SHM_SIZE": ["--shm-size", str(plan.shm_size_bytes)] if plan.shm_size_bytes else [],
        "ENVIRONMENT": [
            word for name, value in environment.items() for word in ("--env", _told(name, value))
        ],
        "SECRETS": [
            f"{name}={version}" for name, value in environment.items() if (version := secret_version(value))
        ],
        "COMMAND": container_command(plan),
    }


def _told(name: str, value: str) -> str:
    """Return how docker is told a variable; that of a secret it finds in its own environment."""
    return name if secret_version(value) else f"{name}={value}"


def _spans(settings: Settings) -> Mapping[str, list[str]]:
    scale = settings.time_scale
    http_s = max(_LEAST_CALL_S, settings.timing.http_timeout / timedelta(seconds=1))
    return {
        "PAUSES": [_seconds(pause / scale) for pause in _PAUSES_S],
        "LOG_EVERY": [_seconds(_LOG_EVERY_S / scale)],
        "HTTP_TIMEOUT": [_seconds(http_s)],
        # Whole seconds, because docker and the shell's arithmetic take no others.
        "LAST_LOG_LIMIT": [str(math.ceil(max(_LEAST_CALL_S, _LAST_LOG_S / scale)))],
        "HURRIED_LOG_LIMIT": [str(math.ceil(max(_LEAST_CALL_S, _HURRIED_LOG_S / scale)))],
        "STOP_GRACE": [str(max(1, math.ceil(_STOP_GRACE_S / scale)))],
    }


def _seconds(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _below(uri: str, nonce: str) -> str:
    return f"{uri}/{nonce}" if uri else ""
