"""Machines for real: their scripts run under bash, their containers are processes, and nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="simulated machines need Linux")

WHOLE_LIFE = """#!/bin/bash
metadata() { curl -sf -H 'Metadata-Flavor: Google' "http://metadata.google.internal/computeMetadata/v1/$1"; }
token=$(metadata instance/service-accounts/default/token | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')
header() { printf 'header = "Authorization: Bearer %s"\\n' "${token}"; }
echo "token ${token} of $(metadata instance/name) in $(metadata instance/zone)"
docker pull worker:1
docker run --name work -e GREETING=hello worker:1 /opt/venv/bin/python -c '
import os
print(os.environ["GREETING"], os.environ["FROM_IMAGE"], sorted(os.environ))
' >"${SF_GUEST_STATE}/out" 2>&1
echo "container ended with $?"
curl -sf -K <(header) --data-binary "@${SF_GUEST_STATE}/out" -o /dev/null -H 'Content-Type: text/plain' \\
  'https://storage.googleapis.com/upload/storage/v1/b/bucket/o?uploadType=media&ifGenerationMatch=0&name=out'
echo "uploaded with $?"
curl -sf -K <(header) -X DELETE -o /dev/null \\
  "https://compute.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instances/$(metadata instance/name)"
echo "deleted with $?"
"""


def alive(marker: str) -> list[int]:
    """Return the processes whose command line or working folder names `marker`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                folder = str((entry / "cwd").readlink())
            except OSError:
                continue
            if marker in command or marker in folder:
                found.append(int(entry.name))
    return found


def test_a_machine_lives_its_whole_life_on_the_local_cloud(cloud):
    cloud.start(WHOLE_LIFE)
    cloud.await_that(lambda: cloud.object_named("out") is not None, cloud.serial)
    said = cloud.object_named("out")
    assert said.startswith("hello yes ")
    assert "STORAGE_EMULATOR_HOST" in said
    assert "SF_GUEST_STATE" not in said
    cloud.await_status("404")
    cloud.await_that(lambda: not alive(str(cloud.root)))
    cloud.await_that(lambda: not list((cloud.root / "machines").iterdir()))


def test_the_console_shows_the_script_as_a_real_one_does(cloud):
    cloud.start("echo one; echo two >&2")
    shown = cloud.await_serial("two")
    agent = "sf-vm google_metadata_script_runner[417]: startup-script: "
    assert shown == "".join(f"{agent}{line}\r\n" for line in ("one", "two"))


def test_a_script_that_ends_leaves_the_machine_running(cloud):
    cloud.start("echo over")
    cloud.await_serial("over")
    time.sleep(0.1)
    assert cloud.status() == "RUNNING"


def test_shutdown_switches_the_machine_off_and_leaves_it_terminated(cloud):
    cloud.start("echo going; shutdown -h now; echo still here")
    cloud.await_status("TERMINATED")
    assert "still here" in cloud.serial()
    cloud.delete()
    cloud.await_status("404")


def test_going_down_ends_the_container_with_143_and_tells_the_script_nothing(cloud):
    cloud.start(
        """
        trap 'exit' TERM
        docker pull w; docker run -d --name c w sleep 100 >/dev/null; echo ready
        code=$(docker wait c)
        curl -sf --data-binary "ended with ${code}, $(systemctl is-system-running)" -o /dev/null \
          'https://storage.googleapis.com/upload/storage/v1/b/bucket/o?uploadType=media&name=end'
        """
    )
    cloud.await_serial("ready")
    cloud.delete()
    cloud.await_status("404")
    assert cloud.object_named("end") == "ended with 143, stopping"


def test_a_container_that_ignores_being_told_is_killed(cloud):
    cloud.start(
        """
        docker pull w
        docker run -d --name c w bash -c 'trap "" TERM; echo deaf; while :; do sleep 0.1; done'
        until docker logs c | grep -q deaf; do sleep 0.05; done
        echo ready
        curl -sf --data-binary "ended with $(docker wait c)" -o /dev/null \
          'https://storage.googleapis.com/upload/storage/v1/b/bucket/o?uploadType=media&name=end'
        """
    )
    cloud.await_serial("ready")
    cloud.delete()
    cloud.await_status("404")
    assert cloud.object_named("end") == "ended with 137"


def test_a_script_that_does_not_end_is_cut_off_after_the_grace(a_cloud):
    cloud = a_cloud(spot_grace=timedelta(seconds=0.5))
    cloud.start("echo ready; sleep 100", spot=True)
    cloud.await_serial("ready")
    begun = time.monotonic()
    cloud.compute.preempt("us-central1-a", "sf-vm")
    cloud.await_status("404")
    assert time.monotonic() - begun > 0.5
    cloud.await_that(lambda: not alive(str(cloud.root)))


def test_a_preempted_machine_hears_of_it(cloud):
    cloud.start(
        """
        url=http://metadata.google.internal/computeMetadata/v1/instance/preempted
        echo "before: $(curl -s -D headers -H 'Metadata-Flavor: Google' "${url}")"
        tag=$(sed -n 's/^ETag: \\([0-9a-f]*\\).*/\\1/p' headers)
        echo "then: $(curl -s -H 'Metadata-Flavor: Google' "${url}?wait_for_change=true&last_etag=${tag}")"
        sleep 3
        """,
        spot=True,
    )
    cloud.await_serial("before: FALSE")
    cloud.compute.preempt("us-central1-a", "sf-vm")
    cloud.await_serial("then: TRUE")


def test_a_host_error_ends_everything_at_once(cloud):
    cloud.start("docker pull w; docker run -d w sleep 100; echo ready; sleep 100")
    cloud.await_serial("ready")
    assert cloud.compute.host_error("us-central1-a", "sf-vm")
    cloud.await_that(lambda: cloud.runner.processes() == 0)
    cloud.await_that(lambda: not alive(str(cloud.root)))
    assert cloud.status() == "TERMINATED"


CONTAINER = """#!/bin/bash
docker pull worker:1
docker run -d --name work worker:1 sh -c 'sleep 60; echo no end of it' >/dev/null
echo working
docker wait work
docker inspect --format 'ended with {{.State.ExitCode}} {{.State.OOMKilled}}' work
"""


def test_a_container_can_be_ended_from_outside_with_any_code(cloud):
    cloud.start(CONTAINER)
    cloud.await_serial("working")
    (machine,) = cloud.compute.machines()
    cloud.runner.end_containers(machine.id, 3, out_of_memory=True)
    cloud.await_serial("ended with 3 true")


def test_a_signal_to_the_scripts_shell_leaves_the_machine_and_its_container_alone(cloud):
    cloud.start(CONTAINER)
    cloud.await_serial("working")
    (machine,) = cloud.compute.machines()
    home = cloud.root / "machines" / f"sf-vm-{machine.id}"
    shell = (home / "state" / "script.pid").read_text()
    cloud.runner.signal_script(machine.id, signal.SIGKILL)
    cloud.await_that(lambda: not Path(f"/proc/{shell}").exists())
    assert cloud.status() == "RUNNING"
    assert cloud.runner.processes() > 2, "machine, shim, container"
    assert cloud.runner.processes({machine.id}) == 0


def test_a_second_boot_finds_the_disk_and_the_container_ended(cloud):
    cloud.start(
        """
        docker pull w
        if mkdir "${SF_GUEST_STATE}/seen"; then
          docker run -d --name c w sleep 100; echo "first boot is ready"; sleep 100
        fi
        echo "second boot: $(docker inspect -f '{{.State.Running}} {{.State.ExitCode}}' c)"
        """,
        scheduling={"automaticRestart": True},
    )
    cloud.await_serial("first boot is ready")
    cloud.compute.host_error("us-central1-a", "sf-vm")
    cloud.await_serial("second boot: false 255")


def test_accelerators_appear_after_the_driver_is_installed(cloud):
    cloud.start(
        """
        nvidia-smi || echo "no driver yet"
        cos-extensions install gpu
        mountpoint -q "${SF_GUEST_STATE}/nvidia" || mount --bind "${SF_GUEST_STATE}/nvidia" "${SF_GUEST_STATE}/nvidia"
        mount -o remount,exec "${SF_GUEST_STATE}/nvidia" && mountpoint -q "${SF_GUEST_STATE}/nvidia" && echo mounted
        nvidia-smi
        ls "${SF_GUEST_DEVICES}" | tr '\\n' ' '; echo
        """,
        gpus=1,
    )
    shown = cloud.await_serial("nvidiactl")
    for words in ("no driver yet", "mounted", "GPU 0: simulated", "nvidia0"):
        assert words in shown


def test_a_driver_cannot_be_installed_without_accelerators(cloud):
    cloud.start("cos-extensions install gpu; echo ended with $?")
    assert "no GPU device found" in cloud.await_serial("ended with 1")


def test_googles_registry_answers_only_to_a_configured_docker(cloud):
    cloud.start(
        """
        export DOCKER_CONFIG=${SF_GUEST_STATE}/docker
        docker pull us-docker.pkg.dev/p/r/worker:1; echo "first: $?"
        docker-credential-gcr configure-docker --registries=us-docker.pkg.dev
        docker pull us-docker.pkg.dev/p/r/worker:1; echo "second: $?"
        docker pull us-docker.pkg.dev/p/r/missing:1; echo "third: $?"
        """
    )
    shown = cloud.await_serial("third: 1")
    for words in ("first: 1", "second: 0", "denied: Unauthenticated", "manifest unknown"):
        assert words in shown


def test_machines_do_not_disturb_each_other(cloud):
    for name in ("one", "two"):
        cloud.start("docker pull w; docker run -d --name c w sleep 100; echo ready; docker wait c", name=name)
    for name in ("one", "two"):
        cloud.await_serial("ready", name)
    cloud.delete("one")
    cloud.await_status("404", "one")
    assert cloud.status("two") == "RUNNING"
    assert len(alive("sleep\x00100")) >= 2


def test_closing_ends_what_the_script_put_into_the_background_and_into_other_sessions(cloud):
    cloud.start(
        """
        setsid sleep 100 &
        (setsid bash -c 'sleep 100 & sleep 100' &)
        docker pull w; docker run -d w bash -c 'setsid sleep 100 & sleep 100'
        echo ready; sleep 100
        """
    )
    cloud.await_serial("ready")
    cloud.await_that(lambda: len(alive(str(cloud.root))) > 8)
    cloud.compute.close()
    cloud.runner.close()
    assert alive(str(cloud.root)) == []


SUPERVISOR = """
import sys
sys.path.insert(0, {package_root!r})
from pathlib import Path
from datetime import timedelta
from runtender.local.compute.events import Booted
from runtender.local.vm.guest import Network
from runtender.local.vm.runner import VmRunner

class Reports:
    def print_serial(self, instance_id, chunk):
        print(chunk.decode(), flush=True)
    def guest_off(self, instance_id, boot):
        pass

root = Path({root!r})
network = Network(
    storage_tls_port=1, compute_tls_port=1, secrets_tls_port=1, storage_url="http://127.0.0.1:1", ca_file=root
)
runner = VmRunner(root=root, network=network, reports=Reports())
script = "docker pull w; docker run -d w sleep 100; setsid sleep 100 & echo ready; sleep 100"
runner.apply(Booted(instance_id="1", project="p", zone="z", name="vm", boot=1,
                    metadata={{"startup-script": script}}, service_account=None, gpus=0))
sys.stdin.read()
"""


def test_a_killed_supervisor_leaves_no_process_behind(tmp_path):
    from runtender.local.vm.guest import PACKAGE_ROOT  # noqa: PLC0415 (not where this module cannot run)

    program = SUPERVISOR.format(package_root=PACKAGE_ROOT, root=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as supervisor:
        assert supervisor.stdout is not None
        assert any(b"ready" in line for line in supervisor.stdout)
        assert len(alive(str(tmp_path))) > 3
        supervisor.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while alive(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive(str(tmp_path)) == []
