"""Who calls what, and why: the reason for every permission that is granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from runtender.permissions.needs import Call, Need, Where


class Identity(StrEnum):
    """A service account of the deployment, or one of Google's own agents in it (`..._agent`, and `scheduler`)."""

    SUBMIT = "submit"
    MARKER = "marker"
    TICK = "tick"
    WORKER = "worker"
    PUSHER = "pusher"
    SCHEDULER = "scheduler"
    PUBSUB_AGENT = "pubsub_agent"
    STORAGE_AGENT = "storage_agent"
    COMPUTE_AGENT = "compute_agent"


WHO: Mapping[Identity, str] = {
    Identity.SUBMIT: "the function on_submit",
    Identity.MARKER: "the function on_marker",
    Identity.TICK: "the function on_tick",
    Identity.WORKER: "the machines and pods that do the work, and with them the user's code",
    Identity.PUSHER: "what Pub/Sub's push subscriptions show to the functions",
    Identity.SCHEDULER: "Cloud Scheduler itself: service-NUMBER@gcp-sa-cloudscheduler.iam.gserviceaccount.com",
    Identity.PUBSUB_AGENT: "Pub/Sub itself: service-NUMBER@gcp-sa-pubsub.iam.gserviceaccount.com",
    Identity.STORAGE_AGENT: "Cloud Storage itself: service-NUMBER@gs-project-accounts.iam.gserviceaccount.com",
    Identity.COMPUTE_AGENT: "Compute Engine itself: service-NUMBER@compute-system.iam.gserviceaccount.com",
}


@dataclass(frozen=True, slots=True)
class Grant:
    """A call that an identity makes, with the reason."""

    call: Call
    why: str


def _tells_absence(bucket: Where) -> Need:
    # A condition on names does not reach lists: they are a matter of the whole bucket.
    return Need(
        "storage.objects.list",
        bucket,
        "an object that is not there is answered by 404, and not by 403 as if it were forbidden",
    )


_STEP = (
    Grant(
        Call("firestore.projects.databases.documents.batchGet", Where.DATABASE), "read the job and its run"
    ),
    Grant(
        Call("firestore.projects.databases.documents.commit", Where.DATABASE),
        "save each step before it is carried out",
    ),
    Grant(
        Call("firestore.projects.databases.documents.runQuery", Where.DATABASE),
        "look up what other jobs learnt of places and limits",
    ),
    Grant(Call("compute.regions.get"), "see the quota of a region before a machine is asked for"),
    Grant(Call("compute.projects.get"), "see the quota over all regions"),
    Grant(
        Call("serviceusage.services.consumerQuotaMetrics.get"),
        "see the quota that Compute Engine does not tell",
    ),
    Grant(Call("compute.instances.insert"), "make the worker's machine"),
    Grant(Call("compute.zoneOperations.get"), "hear what became of the insert"),
    Grant(Call("compute.instances.get", Where.MACHINES), "see whether the machine is there and is ours"),
    Grant(
        Call("compute.instances.getSerialPortOutput", Where.MACHINES),
        "read the last words of a machine that could not store them",
    ),
    Grant(Call("compute.zoneOperations.list"), "find out why a machine vanished"),
    Grant(Call("compute.instances.delete", Where.MACHINES), "remove the machine"),
    Grant(Call("compute.disks.get", Where.DISKS), "see that the machine's disk is gone too"),
    Grant(Call("compute.disks.delete", Where.DISKS), "remove a disk that stayed behind"),
    Grant(Call("storage.objects.list", Where.STATUS_BUCKET), "look for the worker's markers"),
    Grant(Call("storage.objects.get", Where.MARKERS), "read how the worker ended"),
    Grant(
        Call("storage.objects.insert", Where.MARKERS),
        "write the end of a try that its worker did not tell; never over a marker",
    ),
    Grant(
        Call("storage.objects.insert", Where.MARKER_COPIES),
        "copy the accepted marker to where older readers look",
    ),
    Grant(Call("storage.objects.list", Where.RESULTS_BUCKET), "see that the worker makes progress"),
    Grant(Call("storage.objects.get", Where.RESULTS), "read the worker's summary"),
    Grant(Call("pubsub.projects.topics.publish", Where.NOTIFY_TOPIC), "announce a settled run"),
)

_STEP_ON_PODS = (
    Grant(
        Call("container.projects.locations.clusters.get", Where.CLUSTERS), "find where a cluster is reached"
    ),
    Grant(Call("kubernetes.jobs.create", Where.NAMESPACE), "make the workers' Job"),
    Grant(Call("kubernetes.jobs.get", Where.NAMESPACE), "see how far the Job is"),
    Grant(Call("kubernetes.jobs.delete", Where.NAMESPACE), "remove the Job"),
    Grant(
        Call("kubernetes.jobs.deletecollection", Where.NAMESPACE),
        "remove a Job whose create was never answered, by our labels",
    ),
    Grant(Call("kubernetes.pods.list", Where.NAMESPACE), "see how the workers are, and that none is left"),
    Grant(
        Call("kubernetes.pods.deletecollection", Where.NAMESPACE), "remove pods that their Job left behind"
    ),
    Grant(Call("kubernetes.events.list", Where.NAMESPACE), "find out why a pod does not start"),
    Grant(
        Call("kubernetes.pods.log.get", Where.NAMESPACE), "keep the end of the log of a worker that failed"
    ),
    Grant(Call("storage.objects.insert", Where.POD_LOGS), "store those ends where the workers' logs are"),
)

CALLERS: Mapping[Identity, tuple[Grant | Need, ...]] = {
    Identity.SUBMIT: (
        *_STEP,
        *_STEP_ON_PODS,
        Grant(
            Call("container.projects.locations.clusters.list", Where.CLUSTERS),
            "find a cluster of which only the name is said",
        ),
        Grant(Call("kubernetes.version.get", Where.NAMESPACE), "see which fields of a Job the cluster knows"),
        Grant(
            Call("storage.objects.get", Where.CODE_BUCKET),
            "read a config, and the tables of places, machines and prices",
        ),
        _tells_absence(Where.CODE_BUCKET),
        Grant(Call("storage.objects.get", Where.INPUT_BUCKETS), "see that a run's panel is there"),
        _tells_absence(Where.INPUT_BUCKETS),
        Grant(Call("storage.objects.insert", Where.CONFIGS), "store the config for the workers"),
        Grant(
            Call("pubsub.projects.topics.publish", Where.DEAD_LETTER_TOPIC),
            "put aside a message that cannot be read",
        ),
    ),
    Identity.MARKER: (*_STEP, *_STEP_ON_PODS),
    Identity.TICK: (
        *_STEP,
        *_STEP_ON_PODS,
        Grant(
            Call("kubernetes.jobs.list", Where.ALL_NAMESPACES),
            "find what no event told: Jobs that ended, and orphans",
        ),
        Grant(
            Call("compute.instances.aggregatedList"),
            "find what no event told: machines that ended, and orphans",
        ),
    ),
    Identity.WORKER: (
        Grant(
            Call("storage.objects.get", Where.MARKERS), "see whether its try was given up before it begins"
        ),
        Grant(
            Call("storage.objects.insert", Where.MARKERS),
            "say that it started and how it ended; never over a marker",
        ),
        Grant(Call("storage.objects.insert", Where.LOGS), "store the ends of its log"),
        Grant(Call("storage.objects.get", Where.CODE_BUCKET), "fetch the run's code and config"),
        Grant(Call("storage.objects.get", Where.INPUT_BUCKETS), "read the panel"),
        Grant(Call("storage.objects.insert", Where.RESULTS), "store its cells and its summary"),
        Grant(
            Call("compute.instances.delete", Where.MACHINES),
            "remove itself when its end is stored (SF_GUEST_SELF_DELETE)",
        ),
        Grant(Call("artifactregistry.pull", Where.REPOSITORY), "pull its image"),
        Grant(Call("logging.entries.write"), "let the machine's agent ship its console"),
        Grant(
            Call("secretmanager.projects.secrets.versions.access", Where.SECRETS),
            "read the secrets that its run refers to",
        ),
    ),
    Identity.PUSHER: (Grant(Call("run.invoke", Where.SERVICES), "deliver events to the functions"),),
    Identity.SCHEDULER: (
        Grant(Call("pubsub.projects.topics.publish", Where.TICK_TOPIC), "publish a tick each minute"),
    ),
    Identity.PUBSUB_AGENT: (
        Grant(
            Call("iamcredentials.projects.serviceAccounts.generateIdToken", Where.PUSHER_ACCOUNT),
            "push as the pusher",
        ),
        Grant(
            Call("pubsub.projects.topics.publish", Where.DEAD_LETTER_TOPIC), "put aside what no function took"
        ),
        Grant(
            Call("pubsub.projects.subscriptions.pull", Where.SUBSCRIPTIONS),
            "take what it puts aside off its subscription",
        ),
    ),
    Identity.STORAGE_AGENT: (
        Grant(Call("pubsub.projects.topics.publish", Where.MARKER_TOPIC), "tell of each new marker"),
    ),
    Identity.COMPUTE_AGENT: (
        Grant(
            Call("cloudkms.projects.locations.keyRings.cryptoKeys.encrypt", Where.DISK_KEY),
            "encrypt boot disks with the deployment's key (only with SF_KMS_KEY)",
        ),
    ),
}
