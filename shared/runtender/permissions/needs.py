"""What each call of an API needs: the permissions Google checks, and where it is enough to have them.

Some are named nowhere in the call: an insert of a machine also makes a disk, uses a subnet and acts as the machine's
service account. A role without them fails at the first run and not before, so they are listed with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Where(StrEnum):
    """Where a permission is granted: a resource, or the part of one that a condition leaves (see `bindings`)."""

    PROJECT = "project"
    MACHINES = "machines"
    DISKS = "disks"
    SUBNETS = "subnets"
    WORKER_ACCOUNT = "worker_account"
    PUSHER_ACCOUNT = "pusher_account"
    DATABASE = "database"
    STATUS_BUCKET = "status_bucket"
    MARKERS = "markers"
    MARKER_COPIES = "marker_copies"
    CODE_BUCKET = "code_bucket"
    CONFIGS = "configs"
    LOGS = "logs"
    POD_LOGS = "pod_logs"
    RESULTS_BUCKET = "results_bucket"
    RESULTS = "results"
    INPUT_BUCKETS = "input_buckets"
    TICK_TOPIC = "tick_topic"
    MARKER_TOPIC = "marker_topic"
    NOTIFY_TOPIC = "notify_topic"
    DEAD_LETTER_TOPIC = "dead_letter_topic"
    SUBSCRIPTIONS = "subscriptions"
    SERVICES = "services"
    REPOSITORY = "repository"
    SECRETS = "secrets"
    DISK_KEY = "disk_key"
    CLUSTERS = "clusters"
    NAMESPACE = "namespace"
    ALL_NAMESPACES = "all_namespaces"


KUBERNETES = frozenset({Where.NAMESPACE, Where.ALL_NAMESPACES})
"""Where a cluster's own rules (RBAC) grant, and not IAM: a permission is `group/resource:verb` there."""


@dataclass(frozen=True, slots=True)
class Call:
    """A method of an API, by Google's id, and on what it is called where that makes a difference."""

    method: str
    on: Where = Where.PROJECT


@dataclass(frozen=True, slots=True)
class Need:
    """A permission that a call needs; `why` where the name of the call does not say it."""

    permission: str
    where: Where
    why: str = ""


def _read(objects: Where) -> tuple[Need, ...]:
    return (Need("storage.objects.get", objects),)


def _create(objects: Where) -> tuple[Need, ...]:
    return (Need("storage.objects.create", objects),)


def _replace(objects: Where) -> tuple[Need, ...]:
    why = "replace what an earlier delivery of the same event wrote"
    return (*_create(objects), Need("storage.objects.delete", objects, why))


def _in_namespace(method: str, rule: str) -> Mapping[Call, tuple[Need, ...]]:
    return {Call(f"kubernetes.{method}", Where.NAMESPACE): (Need(rule, Where.NAMESPACE),)}


_INSERT = (
    Need("compute.instances.create", Where.PROJECT),
    Need("compute.instances.setMetadata", Where.PROJECT, "the machine is made with its startup script"),
    Need("compute.instances.setLabels", Where.PROJECT, "the machine is made with the labels it is known by"),
    Need(
        "compute.instances.setServiceAccount", Where.PROJECT, "the machine is made with the worker's account"
    ),
    Need("compute.disks.create", Where.PROJECT, "the insert makes the boot disk"),
    Need("compute.disks.setLabels", Where.PROJECT, "the boot disk is made with labels of its own"),
    Need("compute.subnetworks.use", Where.SUBNETS, "the machine is made in the workers' subnet"),
    Need(
        "iam.serviceAccounts.actAs",
        Where.WORKER_ACCOUNT,
        "the machine runs as the worker's account, and no other",
    ),
)

_TOPICS = (Where.TICK_TOPIC, Where.MARKER_TOPIC, Where.NOTIFY_TOPIC, Where.DEAD_LETTER_TOPIC)

NEEDS: Mapping[Call, tuple[Need, ...]] = {
    Call("compute.instances.insert"): _INSERT,
    Call("compute.instances.get", Where.MACHINES): (Need("compute.instances.get", Where.MACHINES),),
    Call("compute.instances.delete", Where.MACHINES): (Need("compute.instances.delete", Where.MACHINES),),
    Call("compute.instances.getSerialPortOutput", Where.MACHINES): (
        Need("compute.instances.getSerialPortOutput", Where.MACHINES),
    ),
    Call("compute.instances.aggregatedList"): (Need("compute.instances.list", Where.PROJECT),),
    Call("compute.disks.get", Where.DISKS): (Need("compute.disks.get", Where.DISKS),),
    Call("compute.disks.delete", Where.DISKS): (Need("compute.disks.delete", Where.DISKS),),
    Call("compute.zoneOperations.get"): (Need("compute.zoneOperations.get", Where.PROJECT),),
    Call("compute.zoneOperations.list"): (Need("compute.zoneOperations.list", Where.PROJECT),),
    Call("compute.regions.get"): (Need("compute.regions.get", Where.PROJECT),),
    Call("compute.projects.get"): (Need("compute.projects.get", Where.PROJECT),),
    Call("serviceusage.services.consumerQuotaMetrics.get"): (Need("serviceusage.quotas.get", Where.PROJECT),),
    Call("firestore.projects.databases.documents.batchGet", Where.DATABASE): (
        Need("datastore.entities.get", Where.DATABASE),
    ),
    Call("firestore.projects.databases.documents.runQuery", Where.DATABASE): (
        Need("datastore.entities.get", Where.DATABASE),
        Need("datastore.entities.list", Where.DATABASE),
    ),
    Call("firestore.projects.databases.documents.commit", Where.DATABASE): (
        Need("datastore.entities.create", Where.DATABASE),
        Need("datastore.entities.update", Where.DATABASE),
    ),
    Call("storage.objects.list", Where.STATUS_BUCKET): (Need("storage.objects.list", Where.STATUS_BUCKET),),
    Call("storage.objects.list", Where.RESULTS_BUCKET): (Need("storage.objects.list", Where.RESULTS_BUCKET),),
    Call("storage.objects.get", Where.MARKERS): _read(Where.MARKERS),
    Call("storage.objects.get", Where.RESULTS): _read(Where.RESULTS),
    Call("storage.objects.get", Where.CODE_BUCKET): _read(Where.CODE_BUCKET),
    Call("storage.objects.get", Where.INPUT_BUCKETS): _read(Where.INPUT_BUCKETS),
    Call("storage.objects.insert", Where.MARKERS): _create(Where.MARKERS),
    Call("storage.objects.insert", Where.LOGS): _create(Where.LOGS),
    Call("storage.objects.insert", Where.RESULTS): _create(Where.RESULTS),
    Call("storage.objects.insert", Where.MARKER_COPIES): _replace(Where.MARKER_COPIES),
    Call("storage.objects.insert", Where.CONFIGS): _replace(Where.CONFIGS),
    Call("storage.objects.insert", Where.POD_LOGS): _replace(Where.POD_LOGS),
    **{
        Call("pubsub.projects.topics.publish", topic): (Need("pubsub.topics.publish", topic),)
        for topic in _TOPICS
    },
    Call("pubsub.projects.subscriptions.pull", Where.SUBSCRIPTIONS): (
        Need("pubsub.subscriptions.consume", Where.SUBSCRIPTIONS),
    ),
    Call("iamcredentials.projects.serviceAccounts.generateIdToken", Where.PUSHER_ACCOUNT): (
        Need("iam.serviceAccounts.getOpenIdToken", Where.PUSHER_ACCOUNT),
    ),
    Call("run.invoke", Where.SERVICES): (Need("run.routes.invoke", Where.SERVICES),),
    Call("artifactregistry.pull", Where.REPOSITORY): (
        Need("artifactregistry.repositories.downloadArtifacts", Where.REPOSITORY),
    ),
    Call("logging.entries.write"): (Need("logging.logEntries.create", Where.PROJECT),),
    Call("secretmanager.projects.secrets.versions.access", Where.SECRETS): (
        Need("secretmanager.versions.access", Where.SECRETS),
    ),
    Call("container.projects.locations.clusters.get", Where.CLUSTERS): (
        Need("container.clusters.get", Where.CLUSTERS),
        Need("container.clusters.connect", Where.CLUSTERS, "reach the cluster's own API at its name in DNS"),
    ),
    Call("container.projects.locations.clusters.list", Where.CLUSTERS): (
        Need("container.clusters.list", Where.CLUSTERS),
    ),
    # Whoever is known to a cluster may ask for its version.
    Call("kubernetes.version.get", Where.NAMESPACE): (),
    **_in_namespace("jobs.create", "batch/jobs:create"),
    **_in_namespace("jobs.get", "batch/jobs:get"),
    **_in_namespace("jobs.delete", "batch/jobs:delete"),
    **_in_namespace("jobs.deletecollection", "batch/jobs:deletecollection"),
    **_in_namespace("pods.list", "pods:list"),
    **_in_namespace("pods.deletecollection", "pods:deletecollection"),
    **_in_namespace("pods.log.get", "pods/log:get"),
    **_in_namespace("events.list", "events:list"),
    Call("kubernetes.jobs.list", Where.ALL_NAMESPACES): (Need("batch/jobs:list", Where.ALL_NAMESPACES),),
    Call("cloudkms.projects.locations.keyRings.cryptoKeys.encrypt", Where.DISK_KEY): (
        Need("cloudkms.cryptoKeyVersions.useToEncrypt", Where.DISK_KEY),
        Need("cloudkms.cryptoKeyVersions.useToDecrypt", Where.DISK_KEY),
    ),
}
