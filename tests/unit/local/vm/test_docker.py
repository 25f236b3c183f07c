"""The docker command of a simulated machine: real processes, docker's words and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtender.local.vm.guest import PACKAGE_ROOT, isolated_python
from runtender.local.vm.layout import MachineFacts, MachineHome

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulated machines need Linux")


class Docker:
    """A machine's folder without the machine: the test's own process stands for it."""

    def __init__(self, root: Path) -> None:
        self.home = MachineHome(root)
        self.home.make()
        self.home.machine_pid.write_text(str(os.getpid()))
        self.home.write_facts(
            MachineFacts(
                name="vm",
                python=sys.executable,
                package_root=PACKAGE_ROOT,
                worker_python=sys.executable,
                worker_environment={"FROM_IMAGE": "yes"},
                images=("*",),
            )
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home.root), "SECRET": "of the machine"}
        return subprocess.Popen(
            [*isolated_python("runtender.local.vm.docker.cli"), str(self.home.root), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err

    def remove_all(self) -> None:
        if any(self.home.containers.iterdir()):
            names = self("ps", "-aq")[1].split()
            self("rm", "-f", *names)


@pytest.fixture(scope="module")
def pulled(tmp_path_factory):
    """What a machine notes of an image that was pulled."""
    docker = Docker(tmp_path_factory.mktemp("pulled"))
    docker("pull", "worker")
    return docker.home.images.read_bytes()


@pytest.fixture
def docker(tmp_path, pulled):
    docker = Docker(tmp_path)
    docker.home.images.write_bytes(pulled)
    yield docker
    docker.remove_all()


def test_a_container_in_the_foreground_speaks_and_ends_as_its_process_does(docker):
    code, out, err = docker("run", "worker", "bash", "-c", "echo out; echo err >&2; exit 3")
    assert (code, out, err) == (3, "out\n", "err\n")


def test_a_container_in_the_background_is_waited_for_by_name(docker):
    code, out, _ = docker("run", "--detach", "--name", "c", "worker", "bash", "-c", "sleep 0.1; exit 7")
    assert (code, len(out.strip())) == (0, 64)
    assert docker("wait", "c") == (0, "7\n", "")
    state = "{{.State.Running}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.State.Status}} {{.Name}}"
    assert docker("inspect", "--format", state, "c")[1] == "false 7 false exited /c\n"


def test_a_container_sees_its_own_environment_only(docker):
    show = "import os, json; print(json.dumps(dict(os.environ)))"
    code, out, _ = docker("run", "-e", "A=1", "--env=B=2=3", "worker", "/opt/venv/bin/python", "-c", show)
    environment = json.loads(out)
    assert code == 0
    assert {name: environment.get(name) for name in ("A", "B", "FROM_IMAGE", "SECRET")} == {
        "A": "1",
        "B": "2=3",
        "FROM_IMAGE": "yes",
        "SECRET": None,
    }


def test_a_bare_variable_takes_the_callers_value(docker):
    assert docker("run", "-e", "SECRET", "worker", "bash", "-c", "echo $SECRET")[1] == "of the machine\n"


def test_the_image_interpreter_is_that_of_the_worker_environment(docker):
    out = docker("run", "worker", "/opt/venv/bin/python", "-c", "import sys; print(sys.executable)")[1]
    assert Path(out.strip()).resolve() == Path(sys.executable).resolve()


def test_a_container_can_open_a_socket_in_its_temporary_folder(docker):
    bind = "import os, socket; socket.socket(socket.AF_UNIX).bind(os.environ['TMPDIR'] + '/' + 's' * 60)"
    assert docker("run", "worker", "python", "-c", bind) == (0, "", "")


def test_logs_show_both_streams_and_the_tail(docker):
    docker("run", "--name", "c", "worker", "bash", "-c", "echo 1; echo 2 >&2; sleep 0.1; printf 'no end'")
    assert docker("logs", "c") == (0, "1\nno end", "2\n")
    assert docker("logs", "--tail", "1", "c") == (0, "no end", "")
    assert docker("logs", "--tail", "all", "c")[1] == "1\nno end"


def test_bytes_that_are_no_text_do_not_stop_the_log(docker):
    docker("run", "--name", "c", "worker", "bash", "-c", r"printf 'a\xff\xc3\tb\x1b\n'")
    assert docker("logs", "c")[1] == "a\ufffd\ufffd\tb\x1b\n"


def test_a_log_is_cut_to_its_files_and_loses_its_beginning_only(docker):
    options = ("--log-driver", "json-file", "--log-opt", "max-size=20k", "--log-opt", "max-file=2")
    docker("run", *options, "--name", "c", "worker", "seq", "1000")
    lines = docker("logs", "c")[1].split()
    assert lines == [str(number) for number in range(1001 - len(lines), 1001)]
    assert 200 < len(lines) < 700


def test_a_long_line_is_kept_in_pieces(docker):
    docker("run", "--name", "c", "worker", "python", "-c", "print('x' * 50000)")
    assert docker("logs", "c")[1] == "x" * 50000 + "\n"


def test_stopping_tells_first(docker):
    docker("run", "-d", "--name", "c", "worker", "sleep", "100")
    assert docker("stop", "-t", "5", "c") == (0, "c\n", "")
    assert docker("inspect", "-f", "{{.State.ExitCode}}", "c")[1] == "143\n"


def test_stopping_kills_what_does_not_listen(docker):
    deaf = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    docker("run", "-d", "--name", "c", "worker", "bash", "-c", deaf)
    while "ready" not in docker("logs", "c")[1]:
        pass
    docker("stop", "-t", "0", "c")
    assert docker("inspect", "-f", "{{.State.ExitCode}}", "c")[1] == "137\n"


def test_killing_takes_the_signal_named(docker):
    docker("run", "-d", "--name", "c", "worker", "sleep", "100")
    docker("kill", "-s", "SIGHUP", "c")
    assert docker("wait", "c")[1] == "129\n"


def test_what_a_container_left_running_ends_with_it(docker):
    docker("run", "--name", "c", "worker", "bash", "-c", "setsid sleep 100 & echo $!")
    pid = int(docker("logs", "c")[1])
    assert not Path(f"/proc/{pid}").exists()


def test_a_signal_to_the_client_reaches_the_container(docker):
    client = docker.start(
        "run",
        "worker",
        "bash",
        "-c",
        "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done",
    )
    with client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        client.send_signal(signal.SIGTERM)
        assert client.stdout.read() == "got it\n"
    assert client.returncode == 5


def test_removing_on_exit_leaves_nothing(docker):
    assert docker("run", "--rm", "worker", "true")[0] == 0
    assert docker("ps", "-a")[1] == ""


def test_a_running_container_is_removed_by_force_only(docker):
    docker("run", "-d", "--name", "c", "worker", "sleep", "100")
    code, _, err = docker("rm", "c")
    assert (code, "container is running" in err) == (1, True)
    assert docker("ps", "-q")[1] != ""
    assert docker("rm", "-f", "c") == (0, "c\n", "")


REFUSED = {
    "an unknown flag": (("run", "--gpus", "all", "worker", "true"), 125, "unknown flag: --gpus"),
    "no image": (("run", "-d"), 125, "requires at least 1 argument"),
    "no command": (("run", "worker"), 125, "no command specified"),
    "a flag without its value": (("run", "--name"), 125, "flag needs an argument: --name"),
    "a size that is none": (("run", "--log-opt", "max-size=big", "worker", "true"), 125, "invalid size"),
    "no such program": (("run", "worker", "no-such-program"), 127, 'exec: "no-such-program": executable file not found'),
    "no program at all": (("run", "worker", "/etc/passwd"), 126, "permission denied"),
    "no such image": (("run", "missing:1", "true"), 125, "manifest for missing:1 not found"),
    "no such image to pull": (("pull", "missing:1"), 1, "manifest unknown"),
    "nobody to wait for": (("wait", "nobody"), 1, "No such container: nobody"),
    "nobody to inspect": (("inspect", "-f", "{{.Id}}", "nobody"), 1, "No such object: nobody"),
    "an unknown command": (("login",), 1, "'login' is not a docker command"),
    "an unknown flag elsewhere": (("logs", "--follow", "c"), 1, "unknown flag: --follow"),
    "two images": (("pull", "a", "b"), 1, "requires exactly 1 argument"),
    "an unknown signal": (("kill", "-s", "NOPE", "c"), 1, "invalid signal: NOPE"),
    "a Google registry without credentials": (("pull", "us-docker.pkg.dev/p/r/i"), 1, "denied: Unauthenticated"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_what_docker_refuses_is_refused(docker, arguments, code, words):
    returned, _, err = docker(*arguments)
    assert (returned, words in err) == (code, True), err


def test_a_name_is_given_once(docker):
    docker("run", "--name", "c", "worker", "true")
    code, _, err = docker("run", "--name", "c", "worker", "true")
    assert (code, 'The container name "/c" is already in use' in err) == (125, True)


def test_a_field_that_there_is_not_is_an_error(docker):
    docker("run", "--name", "c", "worker", "true")
    code, _, err = docker("inspect", "-f", "{{.State.Nope}}", "c")
    assert (code, "template parsing error" in err) == (1, True)


@pytest.mark.parametrize("verb", ["ps", "pull"])
def test_a_command_that_starts_nothing_loads_nothing_for_it(docker, verb):
    python, *rest = isolated_python("runtender.local.vm.docker.cli")
    command = [python, "-X", "importtime", *rest, str(docker.home.root), verb]
    loaded = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
    names = {line.rpartition("|")[2].strip() for line in loaded.splitlines()}

    assert "runtender.local.vm.layout" in names
    assert names & {"dataclasses", "inspect", "runpy", "shutil", "subprocess"} == set()
