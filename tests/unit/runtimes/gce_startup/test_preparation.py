"""Before the container: the first look, GPUs, the registry, the image, and what the container is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Script = Callable[..., str]

A_GPU_PAIR = {
    "hardware": "gpu",
    "machine_type": "g2-standard-24",
    "accelerator_type": "nvidia-l4",
    "accelerator_count": 2,
}


def test_a_vm_whose_end_is_settled_removes_itself_without_pulling(machine: Any, script: Script) -> None:
    machine.cloud.settle(machine.terminal_object)
    machine.run(script("true"))
    assert machine.cloud.calls == ["GET 0.terminal.json", "DELETE sf-demand-0123456789ab-statistical-a1"]
    assert machine.called("docker") == []
    assert machine.called("shutdown -h now")
    assert "SF-MARKER" not in machine.console


def test_a_vm_that_cannot_find_out_does_not_start_until_it_can(
    machine: Any, script: Script, busy: Any, dropped: Any, stale_token: Any
) -> None:
    machine.cloud.planned["GET"] = [busy, dropped, stale_token]
    pulled: list[bool] = []
    machine.cloud.on_call = lambda _: pulled.append("docker pull" in "".join(machine.calls))
    machine.run(script("true"))
    # The log is sent meanwhile, whenever its turn comes.
    calls = [
        (call, late) for call, late in zip(machine.cloud.calls, pulled, strict=False) if ".log" not in call
    ]
    assert calls[:5] == [*[("GET 0.terminal.json", False)] * 4, ("POST 0.started.json", True)]


def test_an_account_that_may_not_list_takes_a_403_for_nothing_there(
    machine: Any, script: Script, may_not_create: Any
) -> None:
    machine.cloud.planned["GET"] = [may_not_create]
    machine.run(script("true"))
    assert machine.cloud.terminal["status"] == "SUCCEEDED"


def test_an_image_that_cannot_be_pulled_is_tried_again_and_then_named(machine: Any, script: Script) -> None:
    machine.tell("pull.fails", 'Error: manifest for "worker:1" not found\n')
    machine.run(script("true"))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["reason"], terminal["exit_code"]) == ("FAILED", "ImagePull", None)
    assert terminal["detail"].splitlines()[-1] == 'Error: manifest for "worker:1" not found'
    # Nothing ran, so no time counts as run time.
    assert (terminal["exec_start_epoch"], terminal["execute_s"]) == (None, None)
    assert terminal["end_epoch"] >= terminal["boot_epoch"]
    assert "POST 0.started.json" not in machine.cloud.calls
    assert len(machine.called("docker pull")) == 6
    assert b"manifest" in machine.cloud.read(terminal["log_uri"])


@pytest.mark.parametrize(
    ("image", "host"),
    [
        pytest.param("us-docker.pkg.dev/p/repo/worker:1", "us-docker.pkg.dev", id="Artifact Registry"),
        pytest.param("gcr.io/p/worker", "gcr.io", id="Container Registry"),
        pytest.param("eu.gcr.io/p/worker", "eu.gcr.io", id="Container Registry in Europe"),
        pytest.param("docker.io/library/worker", None, id="another registry"),
        pytest.param("gcr.io.example.com/p/worker", None, id="a registry that looks like Google's"),
        pytest.param("worker:1", None, id="no registry"),
    ],
)
def test_only_googles_registries_are_told_who_the_vm_is(
    machine: Any, script: Script, image: str, host: str | None
) -> None:
    machine.run(script("true", image_uri=image))
    logins = ["docker-credential-gcr configure-docker --registries=" + host] if host else []
    assert machine.called("docker-credential-gcr") == logins


def test_a_cpu_vm_touches_no_driver(ordinary: Any) -> None:
    for tool in ("cos-extensions", "mount", "nvidia-smi"):
        assert ordinary.called(tool) == []


@pytest.mark.parametrize((), [pytest.param(id="acceptance-Z17")])
def test_every_gpu_device_there_is_reaches_the_container(machine: Any, script: Script) -> None:
    devices = ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
    for device in (*devices, "nvram", "null"):
        (machine.folder / "dev" / device).touch()
    machine.run(script("true", **A_GPU_PAIR))
    (run,) = machine.called("docker run")
    assert [device for device in devices if f"--device {machine.folder}/dev/{device} " in run] == list(
        devices
    )
    assert "nvram" not in run
    nvidia = machine.folder / "state" / "nvidia"
    assert f"--volume {nvidia}/lib64:/usr/local/nvidia/lib64" in run
    assert f"--volume {nvidia}/bin:/usr/local/nvidia/bin" in run
    assert "--env LD_LIBRARY_PATH=/usr/local/nvidia/lib64" in run


@pytest.mark.parametrize(
    ("mounted", "binds"), [pytest.param(False, 1, id="not mounted yet"), pytest.param(True, 0, id="mounted")]
)
def test_the_driver_is_installed_and_the_folder_bound_once(
    machine: Any, script: Script, mounted: bool, binds: int
) -> None:
    if not mounted:
        machine.tell("mountpoint.fails")
    machine.run(script("true", **A_GPU_PAIR))
    nvidia = machine.folder / "state" / "nvidia"
    assert machine.called("cos-extensions install gpu")
    assert len(machine.called(f"mount --bind {nvidia} {nvidia}")) == binds
    assert machine.called(f"mount -o remount,exec {nvidia}")
    assert machine.called("nvidia-smi")


@pytest.mark.parametrize(
    "tool",
    [pytest.param("cos-extensions", id="the installer"), pytest.param("nvidia-smi", id="the driver itself")],
)
def test_a_driver_that_fails_is_named_with_its_own_words(machine: Any, script: Script, tool: str) -> None:
    machine.tell(f"{tool}.fails", "driver 535 does not support this kernel\n")
    machine.run(script("true", **A_GPU_PAIR))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["reason"]) == ("FAILED", "GpuDriver")
    assert terminal["detail"] == "driver 535 does not support this kernel"
    assert (terminal["exec_start_epoch"], terminal["execute_s"]) == (None, None)
    assert machine.called("docker pull") == []


def test_the_container_is_kept_bounded_and_sized(machine: Any, script: Script) -> None:
    machine.run(script("true", shm_size_bytes=1 << 30))
    (run,) = machine.called("docker run")
    assert "--rm" not in run
    assert f"--name sf-{machine.nonce} " in run
    assert "--log-driver json-file --log-opt max-size=50m --log-opt max-file=2" in run
    assert "--shm-size 1073741824" in run


def test_the_worker_is_told_who_it_is(machine: Any, script: Script) -> None:
    line = 'for a; do case $a in SF_*) echo "$a" ;; esac; done'
    machine.run(script(line, env={"GREETING": 'it\'s $HOME "here"', "SF_NONCE": "forged"}))
    (run,) = machine.called("docker run")
    assert f"--env SF_NONCE={machine.nonce} " in run
    assert "forged" not in run
    assert "GREETING=it" in run


def test_a_failed_boot_on_a_vm_that_goes_down_is_not_the_images_fault(machine: Any, script: Script) -> None:
    machine.tell("pull.fails", "net/http: request canceled")
    machine.tell("systemctl.says", "stopping\n")
    machine.run(script("true"))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["reason"], terminal["execute_s"]) == ("INTERRUPTED", None, None)


def test_a_vm_without_a_place_for_its_files_says_so_and_does_nothing(machine: Any, script: Script) -> None:
    (machine.folder / "state").write_text("in the way")
    machine.run(script("true"))
    assert "runtender: no folder" in machine.console
    assert machine.cloud.calls == []
