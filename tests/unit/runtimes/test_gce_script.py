"""The startup script as rendered: what a plan puts into it, and that nothing in a plan can break out of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runtender.ids import marker_object
from runtender.model import Job, Resource, SubmitKind
from runtender.runtimes.gce_script import container_command, container_environment, startup_script
from runtender.settings import Settings
from runtender.worker.source import bootstrap_source

AWKWARD = 'it\'s "here" $HOME `id` \\ \n@@NONCE@@ é'


def test_every_place_in_the_template_is_filled(
    a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> None:
    assert re.findall(r"@@\w*@@", startup_script(a_job(), a_row(), settings)) == []


def test_the_same_try_always_gets_the_same_script(
    a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> None:
    assert startup_script(a_job(), a_row(), settings) == startup_script(a_job(), a_row(), settings)


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C12")])
def test_the_script_knows_its_bucket_its_objects_and_its_vm(
    a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> None:
    job, row = a_job(status_bucket="bkt"), a_row()
    script = startup_script(job, row, settings)
    terminal = marker_object(job.job_key, row.nonce, 0, "terminal").replace("/", "%2F")
    assert "STATUS_BUCKET=bkt " in script
    assert f"TERMINAL_OBJECT={terminal}\n" in script
    assert f"INSTANCE={row.name}\n" in script
    assert "-X DELETE" in script


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        pytest.param({}, "GPU_COUNT=0", id="acceptance-C12 without GPUs"),
        pytest.param(
            {"accelerator_type": "nvidia-l4", "accelerator_count": 2},
            "GPU_COUNT=2",
            id="acceptance-C12 with GPUs",
        ),
        pytest.param(
            {"shm_size_bytes": 1 << 30}, "SHM_SIZE=(--shm-size 1073741824)", id="sized shared memory"
        ),
        pytest.param({}, "SHM_SIZE=()", id="docker's shared memory"),
        pytest.param({"logs_uri": ""}, "LOG_BUCKET='' LOG_OBJECT='' LOG_URI=''", id="no place for logs"),
    ],
)
def test_what_the_plan_says_stands_in_the_script(
    a_job: Callable[..., Job],
    a_row: Callable[..., Resource],
    settings: Settings,
    plan: dict[str, object],
    line: str,
) -> None:
    assert line in startup_script(a_job(**plan), a_row(), settings)


@pytest.mark.parametrize(
    ("allowed", "word"),
    [pytest.param(True, "true", id="allowed"), pytest.param(False, "false", id="forbidden")],
)
def test_self_deletion_follows_the_setting(
    a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings, allowed: bool, word: str
) -> None:
    script = startup_script(a_job(), a_row(), replace(settings, guest_self_delete=allowed))
    assert f"SELF_DELETE={word} " in script


@pytest.mark.parametrize(
    ("env", "pauses", "log_every"),
    [
        pytest.param(
            {}, "PAUSES=(1 2 4 8 16 30)", "LOG_EVERY=60 HTTP_TIMEOUT=30 STOP_GRACE=10", id="for real"
        ),
        pytest.param(
            {"SF_TIME_SCALE": "20"},
            "PAUSES=(0.05 0.1 0.2 0.4 0.8 1.5)",
            "LOG_EVERY=3 HTTP_TIMEOUT=5 STOP_GRACE=1",
            id="twenty times faster",
        ),
    ],
)
def test_waits_follow_the_time_scale(
    a_job: Callable[..., Job],
    a_row: Callable[..., Resource],
    env: dict[str, str],
    pauses: str,
    log_every: str,
) -> None:
    settings = Settings.from_env({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "code", **env})
    script = startup_script(a_job(), a_row(), settings)
    assert pauses in script
    assert log_every in script


def test_words_reach_the_container_as_they_are(
    a_task: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> None:
    """Run the rendered assignments and let bash print the words, each ended by a NUL."""
    job = a_task("say", AWKWARD, args=("", "--flag=*"), env={"GREETING": AWKWARD})
    script = startup_script(job, a_row(), settings)
    arrays = script[script.index("readonly -a SHM_SIZE") : script.index("# Seconds.")]
    program = arrays + 'printf \'%s\\0\' "${COMMAND[@]}" "${ENVIRONMENT[@]: -1}"'
    printed = subprocess.run(["bash", "-u", "-c", program], capture_output=True, check=True)
    assert printed.stdout.decode().split("\0")[:-1] == [
        "say",
        AWKWARD,
        "",
        "--flag=*",
        f"GREETING={AWKWARD}",
    ]


def test_the_worker_is_told_in_the_order_of_the_specification(
    a_job: Callable[..., Job], a_row: Callable[..., Resource]
) -> None:
    job, row = a_job(env={"ZONE": "z", "API": "a"}), a_row()
    assert list(container_environment(job, row, "p").items()) == [
        ("SF_VM_RUNTIME", "gce"),
        ("SF_WORKER_RANK", "0"),
        ("SF_WORKER_COUNT", "1"),
        ("MKL_NUM_THREADS", "2"),
        ("NUMEXPR_NUM_THREADS", "2"),
        ("OMP_NUM_THREADS", "2"),
        ("OPENBLAS_NUM_THREADS", "2"),
        ("VECLIB_MAXIMUM_THREADS", "2"),
        ("SF_PROJECT_ID", "p"),
        ("SF_RUN_ID", job.run_id),
        ("SF_JOB_KEY", job.job_key),
        ("SF_NONCE", row.nonce),
        ("SF_ATTEMPT", "1"),
        ("SF_PLACEMENT", "3"),
        ("SF_STATUS_BUCKET", "status"),
        ("SF_CELLS_URI", f"gs://cells/artifacts/{job.run_id}/{job.job_key}/{row.nonce}"),
        ("SF_LOGS_URI", f"gs://code/runs/logs/{job.job_key}/{row.nonce}"),
        ("API", "a"),
        ("ZONE", "z"),
    ]


def test_a_plan_may_set_the_thread_caps_and_not_who_the_worker_is(
    a_job: Callable[..., Job], a_row: Callable[..., Resource]
) -> None:
    env = container_environment(a_job(env={"OMP_NUM_THREADS": "7", "SF_NONCE": "forged"}), a_row(), "p")
    assert (env["OMP_NUM_THREADS"], env["SF_NONCE"]) == ("7", a_row().nonce)


def test_without_places_for_cells_and_logs_the_worker_is_told_none(
    a_job: Callable[..., Job], a_row: Callable[..., Resource]
) -> None:
    env = container_environment(a_job(cells_uri="", logs_uri=""), a_row(), "p")
    assert (env["SF_CELLS_URI"], env["SF_LOGS_URI"]) == ("", "")


def test_a_forecast_runs_the_bootstrap(a_job: Callable[..., Job]) -> None:
    plan = a_job(entrypoint="forecast_worker.main:main").plan
    assert container_command(plan) == [
        "/opt/venv/bin/python",
        "-c",
        bootstrap_source(),
        "--package-uri",
        "gs://code/runs/worker-0badcafe.zip",
        "--entrypoint",
        "forecast_worker.main:main",
        "--config-uri",
        "gs://code/runs/demand-0123456789ab.json",
    ]


def test_a_task_runs_its_own_command(a_job: Callable[..., Job]) -> None:
    plan = a_job(kind=SubmitKind.TASK, command=("say", "yes"), args=("twice",)).plan
    assert container_command(plan) == ["say", "yes", "twice"]


def test_the_script_fits_into_the_metadata_of_a_vm(
    a_job: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> None:
    assert len(startup_script(a_job(), a_row(), settings).encode()) < 64 * 1024


def test_the_rendered_script_is_as_clean_as_its_template(
    a_job: Callable[..., Job], a_task: Callable[..., Job], a_row: Callable[..., Resource], settings: Settings
) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which(
        "shellcheck"
    )
    if shellcheck is None:
        pytest.skip("shellcheck is not installed")
    for job in (a_job(accelerator_type="nvidia-l4", accelerator_count=1), a_task("say", "yes")):
        script = startup_script(job, a_row(), settings)
        # Other programs' text stands in single quotes on purpose, backquotes and all.
        found = subprocess.run(
            [shellcheck, "--exclude=SC2016", "-"], input=script.encode(), capture_output=True, check=False
        )
        assert found.stdout.decode() == ""
