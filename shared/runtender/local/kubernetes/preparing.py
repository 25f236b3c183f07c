"""What comes before a container runs: volumes mounted, image pulled, environment filled in. Each can fail, and is tried again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.containers import Misconfigured, is_image_name, missing_volume, start_of
from runtender.local.kubernetes.documents import Document
from runtender.local.kubernetes.pod_status import show_waiting
from runtender.local.kubernetes.pods import first_container
from runtender.local.kubernetes.recorder import Recorder
from runtender.local.kubernetes.runs import Run, Runs, Stage

KUBELET = "kubelet"

# Back-off doubles up to its bound long before this many times.
_MOST_DOUBLINGS = 16


def growing(first: timedelta, longest: timedelta, failures: int) -> timedelta:
    """Return how long to wait after so many failures in a row: twice as long after each."""
    doubled: timedelta = first * 2 ** min(max(failures - 1, 0), _MOST_DOUBLINGS)
    return min(longest, doubled)


class Preparing:
    """Gets pods ready and asks for their containers. `images` says whether an image is there to be pulled."""

    def __init__(
        self, cluster: Cluster, recorder: Recorder, runs: Runs, images: Callable[[str], bool]
    ) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._runs = runs
        self._images = images

    def begin(self, pod: Document, run: Run) -> None:
        """Mount a pod's volumes and pull its image."""
        if trouble := missing_volume(self._cluster.store, pod):
            self._recorder.warning(pod, KUBELET, "FailedMount", trouble)
            self._runs.later(run, self._cluster.timings.mount_retry, self.begin)
            return
        self._recorder.normal(pod, KUBELET, "Pulling", f'Pulling image "{first_container(pod)["image"]}"')
        self._runs.later(run, self._cluster.timings.pull, self._pulled)

    def start(self, pod: Document, run: Run) -> None:
        """Ask for a pod's container to be run."""
        try:
            order = start_of(self._cluster.store, self._cluster.name, pod, run.restart)
        except Misconfigured as trouble:
            self._wait(run, "CreateContainerConfigError", str(trouble))
            self._recorder.warning(pod, KUBELET, "Failed", f"Error: {trouble}")
            self._runs.later(run, self._cluster.timings.pull_retry, self.start)
            return
        run.stage = Stage.ASKED
        self._recorder.normal(pod, KUBELET, "Created", f"Created container: {order.container}")
        self._recorder.normal(pod, KUBELET, "Started", f"Started container {order.container}")
        self._cluster.tell(order)

    def _pulled(self, pod: Document, run: Run) -> None:
        image = first_container(pod)["image"]
        if not is_image_name(image):
            words = f'Failed to apply default image tag "{image}": invalid reference format'
            self._wait(run, "InvalidImageName", words)
            self._recorder.warning(pod, KUBELET, "InspectFailed", words)
        elif not self._images(image):
            words = f'failed to pull and unpack image "{image}": failed to resolve reference: not found'
            self._wait(run, "ErrImagePull", words)
            self._recorder.warning(pod, KUBELET, "Failed", f'Failed to pull image "{image}": {words}')
            self._runs.later(run, self._cluster.timings.stop, self._back_off)
        else:
            run.failures = 0
            self._recorder.normal(pod, KUBELET, "Pulled", f'Successfully pulled image "{image}"')
            self.start(pod, run)

    def _back_off(self, pod: Document, run: Run) -> None:
        words = f'Back-off pulling image "{first_container(pod)["image"]}"'
        self._wait(run, "ImagePullBackOff", words)
        self._recorder.normal(pod, KUBELET, "BackOff", words)
        run.failures += 1
        timings = self._cluster.timings
        self._runs.later(
            run, growing(timings.pull_retry, timings.longest_restart, run.failures), self._pulled
        )

    def _wait(self, run: Run, reason: str, message: str) -> None:
        now = self._cluster.now
        self._cluster.store.edit(
            run.key, lambda document: show_waiting(document, now, reason, message, restarts=run.restart)
        )
