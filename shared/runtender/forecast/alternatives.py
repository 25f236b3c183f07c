"""Other machines that a plane may take where a job's own is not to be had (SF_ALTERNATIVES).

The order is: the job's own machine in every place, then the first alternative in every place, then the second. A job's work
was cut for its own machine, so another one has at least as many vCPUs and as much memory, and the same GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtender.forecast import machines
from runtender.forecast.catalogue import Catalogue
from runtender.forecast.validation import FieldReader
from runtender.model import Machine, Placement
from runtender.settings import Settings

SAME = "same"
ANY = "*"
_SOLD = {"spot": True, "standard": False}


def with_alternatives(
    placements: tuple[Placement, ...],
    own: Machine,
    settings: Settings,
    catalogue: Catalogue,
    *,
    accelerators: int = 0,
) -> tuple[Placement, ...]:
    """Return the placements of the plan's own machine, and behind them those of its alternatives.

    Raises `Rejected` for an alternative that cannot do the work.
    """
    reader = FieldReader()
    told = settings.alternatives.get(own.machine_type, settings.alternatives.get(ANY, ()))
    others = list(_others(reader, told, own, catalogue, accelerators))
    reader.finish()
    elsewhere = (
        Placement(region=one.region, zone=one.zone, subnetwork_uri=one.subnetwork_uri, machine=other)
        for other in others
        for one in placements
    )
    return (*placements, *elsewhere)


def _others(
    reader: FieldReader, told: tuple[str, ...], own: Machine, catalogue: Catalogue, accelerators: int
) -> Iterator[Machine]:
    for text in told:
        name, _, sold = text.partition(" ")
        machine_type = own.machine_type if name == SAME else name
        spot = _SOLD.get(sold, own.spot)
        problem = _problem(machine_type, own, catalogue, accelerators, spot=spot)
        if problem:
            reader.fault("SF_ALTERNATIVES", f"{text!r} for {own.machine_type}: {problem}", "choose another")
        elif (machine_type, spot) != (own.machine_type, own.spot):
            yield machine_of(machine_type, catalogue, accelerators=accelerators, spot=spot)


def machine_of(machine_type: str, catalogue: Catalogue, *, accelerators: int, spot: bool) -> Machine:
    """Return a machine type with what its VMs need."""
    return Machine(
        machine_type=machine_type,
        vcpus=machines.shape_of(machine_type, catalogue).vcpus,
        disk_type=machines.disk_type(machine_type, catalogue),
        on_host_maintenance=machines.on_host_maintenance(
            machine_type, accelerators=accelerators, spot=spot, catalogue=catalogue
        ),
        spot=spot,
    )


def _problem(machine_type: str, own: Machine, catalogue: Catalogue, accelerators: int, *, spot: bool) -> str:
    """Say why a machine cannot stand in for the job's own; empty when it can."""
    if machine_type != own.machine_type and (accelerators or catalogue.family_of(machine_type).with_gpus):
        return "a machine with GPUs has no substitute, only another way to be sold"
    other, needed = (machines.shape_of(name, catalogue) for name in (machine_type, own.machine_type))
    if other.vcpus < needed.vcpus or other.memory_bytes < needed.memory_bytes:
        return "it is smaller"
    try:
        machines.check_provisioning(machine_type, spot=spot, catalogue=catalogue)
    except ValueError as error:
        return str(error)
    return ""
