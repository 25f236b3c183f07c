"""The machine's kubectl against the simulated API: what people do by hand, and what they expect to read.

`kubectl create <kind> <name>` is not among it: newer ones send protocol buffers, which the simulation does not take.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

KUBECTL = shutil.which("kubectl")

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="this machine has no kubectl")


class Kubectl:
    """kubectl with a configuration and a home of its own."""

    def __init__(self, home: Path, server: str, ca_file: Path) -> None:
        self._home = home
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(ca_file)}}],
            "users": [{"name": "u", "user": {"token": "none"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (home / "config.json").write_text(json.dumps(config))

    @contextmanager
    def start(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command until the block is left."""
        env = {
            "KUBECONFIG": str(self._home / "config.json"),
            "HOME": str(self._home),
            "PATH": "/usr/bin:/bin",
        }
        pipe = subprocess.PIPE
        command = [str(KUBECTL), *words]
        process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def run(self, *words: str, document: Any = None, code: int = 0) -> str:
        """Run a command to its end; return what it printed, with its complaints where it should fail."""
        with self.start(*words) as process:
            out, complaints = process.communicate(json.dumps(document) if document else "", timeout=30)
        assert process.returncode == code, complaints
        return out + complaints if code else out


@pytest.fixture
def kubectl(served, tmp_path) -> Kubectl:
    home = tmp_path / "home"
    home.mkdir()
    return Kubectl(home, f"https://{served.server.endpoint}", served.own.ca_file)


def test_a_job_is_applied_waited_for_described_and_deleted(kubectl, job) -> None:
    applied = kubectl.run("apply", "-f", "-", document=job("j", "say", "hello", "bye"))
    assert applied == "job.batch/j created\n"

    waited = kubectl.run("wait", "--for=condition=complete", "job/j", "--timeout=20s")
    assert waited == "job.batch/j condition met\n"

    described = kubectl.run("describe", "job", "j")
    for words in (
        "0 Active (0 Ready) / 2 Succeeded / 0 Failed",
        "Completed Indexes:  0,1",
        "SuccessfulCreate",
        "Job completed",
    ):
        assert words in described
    assert kubectl.run("logs", "job/j", "--tail=1") == "bye\n"
    assert (
        kubectl.run("apply", "-f", "-", document=job("j", "say", "hello", "bye")) == "job.batch/j unchanged\n"
    )

    assert kubectl.run("delete", "job", "j") == 'job.batch "j" deleted\n'
    assert kubectl.run("wait", "--for=delete", "pods", "-l", "job-name=j", "--timeout=20s") == ""
    assert "NotFound" in kubectl.run("get", "job", "j", code=1)


def test_what_is_there_is_shown_as_a_table(kubectl, job) -> None:
    kubectl.run("create", "-f", "-", document=job("j", "run", workers=1))
    kubectl.run("wait", "--for=condition=ready", "pods", "-l", "job-name=j", "--timeout=20s")

    (header, pod) = kubectl.run("get", "pods").splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert pod.split()[1:4] == ["1/1", "Running", "0"]
    assert kubectl.run("get", "jobs", "-o", "jsonpath={.items[*].status.active}") == "1"
    assert kubectl.run("get", "jobs", "--no-headers").split()[:3] == ["j", "Running", "0/1"]
    everything = kubectl.run("get", "all")
    assert "pod/j-0-" in everything
    assert "job.batch/j" in everything
    assert len(kubectl.run("get", "nodes", "--no-headers").splitlines()) == 4
    assert "Successfully assigned default/j-0-" in kubectl.run("events")


def test_a_pod_is_described_with_its_events(kubectl, job) -> None:
    kubectl.run("create", "-f", "-", document=job("j", "fail", "3", workers=1, backoffLimit=0))
    kubectl.run("wait", "--for=condition=failed", "job/j", "--timeout=20s")

    described = kubectl.run("describe", "pods", "-l", "job-name=j")

    for words in (
        "Exit Code:    3",
        "Reason:       Error",
        "Scheduled",
        "Pulled",
        "Started container worker",
    ):
        assert words in described


def test_a_wrong_job_is_refused_with_its_field(kubectl, job) -> None:
    typo = kubectl.run("create", "-f", "-", document=job("j", "run", paralelism=2), code=1)
    assert 'unknown field "spec.paralelism"' in typo

    wrong = kubectl.run("create", "-f", "-", document=job("j", "run", maxFailedIndexes=1), code=1)
    assert "spec.backoffLimitPerIndex: Required value" in wrong

    kubectl.run("create", "-f", "-", document=job("j", "run"))
    assert "(AlreadyExists)" in kubectl.run("create", "-f", "-", document=job("j", "run"), code=1)
    assert "field is immutable" in kubectl.run(
        "apply", "-f", "-", document=job("j", "run", workers=3, parallelism=1), code=1
    )


def test_changes_are_seen_as_they_come(kubectl, job) -> None:
    with kubectl.start("get", "jobs", "--watch", "--output-watch-events", "--no-headers") as watching:
        assert watching.stdout is not None
        kubectl.run("create", "-f", "-", document=job("j", "say", "hello"))
        kubectl.run("wait", "--for=condition=complete", "job/j", "--timeout=20s")
        kubectl.run("delete", "job", "j")
        seen: list[list[str]] = []
        while not seen or seen[-1][0] != "DELETED":
            seen.append(watching.stdout.readline().split()[:3])

    assert seen[0] == ["ADDED", "j", "Running"]
    assert ["MODIFIED", "j", "Complete"] in seen


def test_a_log_is_followed_to_its_end(kubectl, served, job) -> None:
    kubectl.run("create", "-f", "-", document=job("j", "run", workers=1))
    kubectl.run("wait", "--for=condition=ready", "pods", "-l", "job-name=j", "--timeout=20s")
    (pod,) = served.server.documents("pods")
    uid = pod["metadata"]["uid"]
    served.server.pod_log(uid, b"one\n")

    with kubectl.start("logs", "--follow", "job/j") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "one\n"
        served.server.pod_log(uid, b"two\n")
        assert following.stdout.readline() == "two\n"
        served.server.pod_exited(uid, 0)
        assert following.stdout.read() == ""


def test_a_deployment_is_rolled_out_scaled_and_changed(kubectl) -> None:
    container = {"name": "worker", "image": "registry/worker:1", "command": ["run"]}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    kubectl.run("apply", "-f", "-", document=document)
    assert "successfully rolled out" in kubectl.run("rollout", "status", "deployment/d", "--timeout=20s")
    kubectl.run("patch", "deployment", "d", "-p", '{"spec":{"replicas":1}}')
    kubectl.run("set", "image", "deployment/d", "worker=registry/worker:2")
    assert "successfully rolled out" in kubectl.run("rollout", "status", "deployment/d", "--timeout=20s")
    assert (
        kubectl.run("get", "deployment", "d", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
        == "registry/worker:2"
    )


def test_a_node_is_cordoned_and_drained(kubectl, job) -> None:
    kubectl.run("create", "-f", "-", document=job("j", "run", workers=1))
    kubectl.run("wait", "--for=condition=ready", "pods", "-l", "job-name=j", "--timeout=20s")
    node = kubectl.run("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")

    drained = kubectl.run("drain", node, "--force", "--ignore-daemonsets", "--timeout=20s")

    assert f"node/{node} drained" in drained
    assert kubectl.run("get", "node", node, "-o", "jsonpath={.spec.unschedulable}") == "true"


def test_a_cluster_says_what_it_has(kubectl) -> None:
    assert "jobs" in kubectl.run("api-resources", "--api-group=batch")
    assert set(kubectl.run("api-versions").split()) == {"v1", "apps/v1", "batch/v1"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    kubectl.run("create", "-f", "-", document=namespace)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": 1}},
    }
    kubectl.run("create", "-f", "-", "-n", "other", document=quota)
    described = kubectl.run("describe", "quota", "q", "-n", "other").splitlines()
    assert described[-1].split() == ["pods", "0", "1"]
    kubectl.run("delete", "namespace", "other", "--timeout=20s")


def test_an_address_is_known_by_its_own_authority_alone(served, tmp_path) -> None:
    home = tmp_path / "stranger"
    home.mkdir()
    stranger = Kubectl(home, f"https://{served.server.endpoint}", served.public.ca_file)

    assert "certificate signed by unknown authority" in stranger.run("get", "nodes", code=1)


def test_a_name_is_known_by_the_other_root(served, tmp_path) -> None:
    home = tmp_path / "by-name"
    home.mkdir()

    nodes = Kubectl(home, f"https://{served.server.dns_endpoint}", served.public.ca_file).run(
        "get", "nodes", "-o", "name"
    )

    assert len(nodes.splitlines()) == 4
