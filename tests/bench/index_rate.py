"""How many index events a second the plane takes in, against a handler that only reads one document.

Run by `run.py`; prints its figures as JSON. All of it is on the local cloud's embedded backend, as in `throughput.py`; the job's
cluster is served from this process, and asked once each ten seconds. The two sides take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.cluster import LOCATION, NAME, ZONE
from tests.bench.figures import figure
from tests.bench.guest import write_started
from tests.bench.indexed_job import config_of
from tests.bench.served import services
from tests.bench.stack import (
    PARTIAL_FUNCTIONS,
    WHOLE_FUNCTIONS,
    Message,
    Stack,
    marker_message,
    submit_message,
)

from runtender.ids import marker_object
from runtender.local.container.clusters import GkeCluster
from runtender.local.container.core import ContainerCore
from runtender.local.container.server import ContainerServer
from runtender.local.http import LocalAuthority, utc_now
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.server import KubernetesServer
from runtender.model import Job, Phase
from runtender.ports import Create
from runtender.wire.documents import job_path, job_to_document

_WORKERS = 100
_FEW = 20
_AIM = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """Events per second, round by round."""

    ours: list[float]
    bare: list[float]


def measure(rounds: int, messages: int) -> Rates:
    """Deliver the ends of a job's workers to the plane and to the bare handler, in turn."""
    rates = Rates(ours=[], bare=[])
    with services() as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            _cluster(folder) as cluster,
            Stack(PARTIAL_FUNCTIONS, folder / "partial", url) as partial,
            Stack(WHOLE_FUNCTIONS, folder / "whole", url, **cluster) as whole,
        ):
            job = _running_job(whole)
            partial.store.commit([Create(path=job_path(job.job_key), data=job_to_document(job))])
            for count in (_FEW, *[messages] * rounds):
                events = _ends(job, count)
                ours = whole.seconds(whole.settings.marker_topic, events)
                bare = partial.seconds(partial.settings.tick_topic, events)
                if count == messages:
                    rates.ours.append(count / ours)
                    rates.bare.append(count / bare)
            if _check(whole, job).stirred_at is None:
                raise SystemExit("no event took its turn to look at the job")
    return rates


@contextmanager
def _cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Serve a standing cluster; yield the settings that lead there."""
    authority, born = LocalAuthority.create(folder / "certificates"), utc_now()
    with ExitStack() as parts:
        kubernetes = KubernetesCore(born=born, name=NAME, zone=ZONE)
        served = parts.enter_context(KubernetesServer(kubernetes, own=authority, public=authority))
        known = GkeCluster(name=NAME, location=LOCATION, born=born, dns_endpoint=served.dns_endpoint)
        gke = parts.enter_context(ContainerServer(ContainerCore(project="p", clusters=[known])))
        yield {"SF_CONTAINER_ENDPOINT": f"{gke.url}/v1", "SF_CLUSTER_ROOTS": str(authority.ca_file)}


def _running_job(whole: Stack) -> Job:
    whole.deliver(whole.settings.submit_topic, [submit_message(config_of(_WORKERS))])
    (job,) = whole.jobs()
    whole.deliver(whole.settings.marker_topic, [marker_message(write_started(whole.objects, job))])
    return _check(whole, job)


def _check(whole: Stack, job: Job) -> Job:
    """Return the job as it is now; raise unless it is at work: of any other, events have less to look at."""
    (now,) = whole.jobs()
    if now.phase is not Phase.RUNNING or now.job_key != job.job_key:
        raise SystemExit(f"the job is not at work: {now}")
    return now


def _ends(job: Job, count: int) -> list[Message]:
    nonce = job.resources[-1].nonce
    indexes = (number % _WORKERS for number in range(count))
    return [marker_message(marker_object(job.job_key, nonce, index, "terminal")) for index in indexes]


def figures(rounds: int, messages: int) -> list[dict[str, Any]]:
    """Return the bare rate as a multiple of ours."""
    rates = measure(rounds, messages)
    ours, bare = statistics.median(rates.ours), statistics.median(rates.bare)
    return [
        figure(
            "an index event against a handler that reads one document",
            round(bare / ours, 2),
            unit="x",
            aim=_AIM,
            detail=f"{ours:.0f} events a second against {bare:.0f}, from publish to acknowledgement",
        )
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=500, help="in each round")
    options = parser.parse_args()
    print(json.dumps(figures(options.rounds, options.messages)))
