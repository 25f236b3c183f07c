"""Pods for real: their containers are processes, they end as containers do, and nothing of them stays."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtender.local.kubernetes.events import KillReason
from runtender.local.vm.guest import PACKAGE_ROOT
from runtender.local.watch import processes_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulated pods need Linux")

DEAF = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
SHOW = (
    "import json, os, sys; print(json.dumps([sys.executable, os.getcwd(), sys.argv[1:], dict(os.environ)]))"
)


def test_a_container_runs_as_the_pod_says_and_finds_nothing_of_the_callers(pods, storage, monkeypatch):
    monkeypatch.setenv("OF_THE_CALLER", "yes")
    pods.start("/opt/venv/bin/python", "-c", SHOW, args=("a", "b"), env={"FROM_POD": "1"})

    assert pods.await_exit() == (0, False)
    assert pods.starts == [("uid-1", 0)]
    python, folder, arguments, environment = json.loads(pods.logs["uid-1"])
    assert (python, arguments) == (sys.executable, ["a", "b"])
    assert folder.startswith(str(pods.root))
    assert environment.pop("PATH").startswith(str(Path(sys.executable).parent))
    assert environment.pop("TMPDIR").endswith("/cwd/tmp")
    environment.pop("LC_CTYPE", None)
    assert environment == {
        "FROM_IMAGE": "yes",
        "FROM_POD": "1",
        "HOME": folder,
        "HOSTNAME": "job-0",
        "STORAGE_EMULATOR_HOST": storage.url,
    }


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        pytest.param(("sh", "-c", "echo out; echo err >&2; exit 7"), 7, b"out\nerr\n", id="an exit code"),
        pytest.param(("sh", "-c", "kill -9 $$"), 137, b"", id="a signal"),
        pytest.param(("/no/such/program",), 128, b"executable file not found in $PATH", id="no such program"),
        pytest.param(("/etc/passwd",), 128, b"permission denied", id="no program"),
        pytest.param((), 128, b"no command specified", id="nothing to run"),
    ],
)
def test_a_containers_end_and_output_are_reported(pods, command, code, words):
    pods.start(*command)

    assert pods.await_exit() == (code, False)
    assert words in pods.logs.get("uid-1", b"")


def test_the_temporary_folder_can_be_used(pods):
    pods.start("python", "-c", "import tempfile; tempfile.NamedTemporaryFile().close()")

    assert pods.await_exit() == (0, False)


@pytest.mark.parametrize(
    ("script", "grace", "code"),
    [
        pytest.param("trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done", 20, 5, id="it obeys"),
        pytest.param("echo ready; exec sleep 60", 20, 143, id="it knows nothing of signals"),
        pytest.param(DEAF, 0.2, 137, id="it does not listen"),
        pytest.param("trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done", 0, 137, id="no grace"),
    ],
)
def test_a_pod_that_has_to_end_is_asked_and_then_killed(pods, script, grace, code):
    pods.start("bash", "-c", script)
    pods.await_log(b"ready")

    pods.kill(grace)

    assert pods.await_exit() == (code, False)


def test_nothing_is_heard_of_a_pod_whose_node_is_lost(pods):
    pods.start("bash", "-c", "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    pods.await_log(b"ready")

    pods.kill(5, KillReason.NODE_LOST)

    pods.await_that(lambda: pods.runner.processes() == 0)
    assert (pods.logs, pods.exits) == ({"uid-1": b"ready\n"}, {})


def test_a_container_can_be_made_to_end_as_if_memory_ran_out(pods):
    pods.start("bash", "-c", DEAF)
    pods.await_log(b"ready")

    pods.runner.end_container("uid-1", 137, oom=True)

    assert pods.await_exit() == (137, True)


def test_what_a_container_has_started_can_be_killed_and_its_first_process_left_to_tell(pods):
    program = "import subprocess, time; time.sleep(0.3); print(subprocess.call(['sleep', '60'])); raise SystemExit(4)"
    pods.start("python", "-c", program)

    # Before there is anything to kill.
    pods.runner.kill_worker("uid-1")

    assert pods.await_exit() == (4, False)
    assert pods.logs["uid-1"] == b"-9\n"


def test_a_pod_has_as_many_cores_as_it_may_and_the_next_pod_others(pods):
    pods.use_cores(1)
    for uid in ("one", "two"):
        pods.start("python", "-c", "import os; print(os.sched_getaffinity(0))", uid=uid)
        pods.await_exit(uid)

    seen = [ast.literal_eval(pods.logs[uid].decode()) for uid in ("one", "two")]
    available = os.sched_getaffinity(0)
    assert [len(cores) for cores in seen] == [1, 1]
    assert len(seen[0] | seen[1]) == min(2, len(available))


def test_what_a_container_left_behind_goes_with_it(pods):
    pods.start("bash", "-c", "setsid sleep 60 & (setsid bash -c 'sleep 60 & sleep 60' &); sleep 0.2; exit 3")

    assert pods.await_exit() == (3, False)
    assert processes_of(pods.root) == []


def test_a_removed_pod_leaves_neither_processes_nor_files_and_disturbs_no_other(pods):
    for uid in ("one", "two"):
        pods.start("bash", "-c", DEAF, uid=uid)
        pods.await_log(b"ready", uid)
    both = pods.runner.processes()

    pods.remove("one")

    assert 0 < pods.runner.processes() < both
    assert pods.runner.processes(apart_from=["two"]) == 0
    assert [folder.name for folder in pods.root.iterdir()] == ["job-0-two-two"]
    assert "one" not in pods.exits


def test_a_container_that_is_started_again_finds_the_pods_files(pods):
    pods.start("sh", "-c", "echo kept >file; exit 1")
    pods.await_exit()
    pods.exits.clear()

    pods.start("cat", "file", restart=1)

    assert pods.await_exit() == (0, False)
    assert pods.starts == [("uid-1", 0), ("uid-1", 1)]
    assert pods.logs["uid-1"] == b"kept\n"


def test_orders_for_a_pod_that_has_ended_or_never_was_are_ignored(pods):
    pods.start("true")
    pods.await_exit()

    pods.kill(1)
    pods.runner.end_container("uid-1", 1)
    pods.kill(1, uid="none")
    pods.runner.end_container("none", 1)
    pods.runner.kill_worker("none")
    pods.remove("none")

    assert pods.exits == {"uid-1": (0, False)}


def test_closing_ends_all_even_where_a_pods_own_process_was_killed(pods):
    pods.start("bash", "-c", "setsid sleep 60 & bash -c 'echo ready; sleep 60'")
    pods.await_log(b"ready")
    sandboxes = [
        pid for pid in processes_of(pods.root) if b"pods.sandbox" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(sandboxes[0], signal.SIGKILL)

    pods.runner.close()

    assert processes_of(pods.root) == []


SUPERVISOR = """
import sys
sys.path.insert(0, {package_root!r})
from pathlib import Path
from runtender.local.kubernetes.events import PodStarted
from runtender.local.pods.runner import PodRunner

class Reports:
    def pod_started(self, uid, restart=0):
        pass
    def pod_log(self, uid, chunk):
        print(chunk.decode(), flush=True)
    def pod_exited(self, uid, exit_code, *, restart=0, oom=False):
        pass

runner = PodRunner(root=Path({root!r}), storage_url="http://127.0.0.1:1", reports=Reports())
runner.apply(PodStarted(cluster="c", namespace="n", name="p", uid="u", restart=0, node="n", hostname="h", container="c",
                        image="i", command=("bash", "-c", "setsid sleep 60 & echo ready; sleep 60"), args=(), env={{}},
                        working_dir="", labels={{}}, annotations={{}}, volumes={{}}, service_account="", gpus=0))
sys.stdin.read()
"""


def test_a_killed_supervisor_leaves_no_process_behind(tmp_path):
    program = SUPERVISOR.format(package_root=PACKAGE_ROOT, root=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as supervisor:
        assert supervisor.stdout is not None
        assert any(b"ready" in line for line in supervisor.stdout)
        assert len(processes_of(tmp_path)) > 2
        supervisor.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while processes_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_of(tmp_path) == []
