"""`runtender plan` and `submit --dry-run`: what a submit would do, without doing any of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from runtender.cli.exits import input_faults
from runtender.cli.output import Format, emit, with_format
from runtender.cli.parameters import duration, max_cost_option, names
from runtender.cli.parts import Part, facts, heading, sentence, table
from runtender.cli.world import with_world
from runtender.client.config_file import read_config
from runtender.client.preview import plan_config
from runtender.client.submission import Wishes
from runtender.client.world import World
from runtender.engine.quota import Room
from runtender.model import SubmitKind

_MOST_PLACEMENTS = 4


@click.command()
@click.argument("config", metavar="CONFIG")
@click.option(
    "--run-limit", metavar="SPAN", callback=duration, help="How long each family may run, e.g. 90m."
)
@click.option(
    "--capacity-wait", metavar="SPAN", callback=duration, help="How long to look for capacity, e.g. 45m."
)
@max_cost_option
@click.option("--models", metavar="A,B", callback=names, help="Only these models of the config.")
@click.option("--families", metavar="A,B", callback=names, help="Only these model families.")
@click.option("--image", help="Container image of the workers.")
@click.option("--package-uri", metavar="URI", help="Code of the workers, as printed by 'runtender stage'.")
@click.option("--entrypoint", metavar="NAME", help="Where the code begins: package.module:function.")
@click.option(
    "--kind",
    type=click.Choice([each.value for each in SubmitKind]),
    default=SubmitKind.FORECAST.value,
    show_default=True,
    help="What CONFIG describes: a forecast, or one plain container.",
)
@with_format
@with_world
def plan(world: World, chosen: Format, /, config: str, *, kind: str, **wishes: Any) -> None:
    """Show what a submit of CONFIG would do: jobs, placements, API requests, sizing, times, quota and cost. Touches nothing.

    CONFIG is a JSON or YAML file, '-' for standard input, or a gs:// URI. Quota is shown for each region and meter, as it
    is now; what cannot be read is not known, and holds nothing up. The requests' bodies are in the JSON and YAML formats
    only.
    """
    with input_faults():
        content = read_config(config, world.objects)
        show_plan(world, chosen, content, Wishes(kind=SubmitKind(kind), **wishes))


def show_plan(world: World, chosen: Format, content: Mapping[str, Any], wishes: Wishes) -> None:
    """Print what a submit of this config would do; raises `Rejected` where it would be refused."""
    document = plan_config(world, content, wishes)
    emit(chosen, document, lambda: _parts(document))


def _parts(document: Mapping[str, Any]) -> Iterator[Part]:
    yield facts([("Run", document["run_id"]), ("Costs at most", _dollars(document["cost"]["at_most_usd"]))])
    for job in document["jobs"]:
        yield from _job(job)


def _job(job: Mapping[str, Any]) -> Iterator[Part]:
    cost, sizing, seconds = job["cost"], job["sizing"] or {}, job["seconds"]
    yield heading(job["family"])
    yield facts(
        [
            ("Job", job["job_key"]),
            (
                "Runtime",
                job["runtime"] if job["served"] else f"{job['runtime']} (planned only: not served yet)",
            ),
            ("Cluster", _cluster(job.get("cluster"))),
            ("Models", ", ".join(job["models"])),
            ("Machines", _machines(job)),
            ("Placements", _first(job["placements"])),
            ("Waits for capacity", _span(seconds["capacity_wait"])),
            ("May run", _span(seconds["run_limit"])),
            ("Machine lives", f"at most {_span(seconds['machine_life'])}"),
            ("Slots", _slots(sizing)),
            ("Measured", ", ".join((sizing.get("slot") or {}).get("measured") or ())),
            ("Quota", _quota_words(job["quota"])),
            ("Notes", "; ".join([*((sizing.get("slot") or {}).get("notes") or ()), *cost["notes"]])),
            ("Costs at most", _dollars(cost["at_most_usd"])),
            ("Expected cost", _dollars(cost["expected_usd"]) if cost["expected_usd"] is not None else ""),
            ("Price not known", ", ".join(cost["unknown"])),
            ("Prices of", cost["read_on"]),
        ]
    )
    yield from _quota(job["quota"])
    yield ""
    yield table(["REQUEST", "PATH"], ([request["method_id"], request["path"]] for request in job["requests"]))


def _quota_words(quota: Mapping[str, Any]) -> str:
    """Say in a line what quota means for a job."""
    if not quota["asked"]:
        return "not looked at by the plane: compute.capacity.preflight is off"
    without = ", ".join(_label(region) for region in quota["regions"] if region["blocked"])
    words = {
        Room.ENOUGH: "enough",
        Room.SOME: f"none in {without}, which would be left out",
        Room.NONE: "none anywhere: the run would end at once (NO_CAPACITY, QuotaBlocked)",
        Room.UNKNOWN: "not known, which holds nothing up",
    }
    room = Room(quota["room"])
    if room is Room.NONE and quota["waits"]:
        return "none anywhere: the run would wait for it"
    return words[room]


def _quota(quota: Mapping[str, Any]) -> Iterator[Part]:
    """Show every meter of every region, and below what is wrong and what can be done about it."""
    rows = [
        (
            _label(region),
            outcome["meter"],
            f"{outcome['needed']} {outcome['unit']}",
            _known(outcome["limit"]),
            _known(outcome["usage"]),
            f"{outcome['status']}{' (advisory)' if outcome['advisory'] else ''}",
        )
        for region in quota["regions"]
        for outcome in region["outcomes"]
    ]
    yield ""
    yield table(
        ["REGION", "METER", "NEEDED", "LIMIT", "IN USE", "VERDICT"],
        rows,
        numbers=["NEEDED", "LIMIT", "IN USE"],
    )
    told = dict.fromkeys(line for region in quota["regions"] for line in region["lines"])
    yield from (sentence(line) for line in told)


def _label(region: Mapping[str, Any]) -> str:
    return f"{region['region']} {region['machine']}".rstrip()


def _known(amount: int | None) -> str:
    return "not known" if amount is None else str(amount)


def _cluster(cluster: Mapping[str, Any] | None) -> str:
    return (
        ""
        if cluster is None
        else f"{cluster['name']} ({'its own' if cluster['own'] else 'stands'}, {cluster['mode']})"
    )


def _machines(job: Mapping[str, Any]) -> str:
    parts = [f"{job['workers']} x {job['machine_type']}", job["accelerators"], "Spot" if job["spot"] else ""]
    return ", ".join(part for part in parts if part)


def _first(placements: list[str]) -> str:
    more = len(placements) - _MOST_PLACEMENTS
    return ", ".join(placements[:_MOST_PLACEMENTS]) + (f" and {more} more" if more > 0 else "")


def _slots(sizing: Mapping[str, Any]) -> str:
    if not sizing:
        return ""
    return f"{sizing['slots_per_unit']} per machine (bound by {sizing['binding_axis']}), {sizing['n_cells']} cells"


def _dollars(amount: float | None) -> str:
    return "not known" if amount is None else f"${amount:,.2f}"


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 120 else f"{minutes} min"
