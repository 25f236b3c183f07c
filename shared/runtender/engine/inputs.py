"""What a submit refers to in Cloud Storage: its config, its panel, the catalogue of places, and the config kept for workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from runtender.capacity.candidates import Region, built_in_regions, parse_catalogue
from runtender.capacity.catalogue import catalogue_faults
from runtender.errors import Rejected
from runtender.model import JobPlan
from runtender.ports import Objects
from runtender.wire.json_input import read_json_object

_MAX_BYTES = 8 * 1024 * 1024


def split_uri(uri: str) -> tuple[str, str]:
    """`gs://bucket/some/name` -> (`bucket`, `some/name`)."""
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return bucket, name


def fetch_config(objects: Objects, uri: str) -> Mapping[str, Any]:
    """Read a run config; raises `Rejected` saying what is wrong with the object."""
    bucket, name = split_uri(uri)
    body = objects.read(bucket, name, limit=_MAX_BYTES + 1)
    if body is None:
        raise Rejected.because("config_uri", f"{uri} does not exist", "upload the config before the message")
    if len(body) > _MAX_BYTES:
        raise Rejected.because("config_uri", f"{uri} is larger than 8 MiB", "store a smaller config")
    try:
        return read_json_object(body)
    except ValueError as error:
        problem = f"{uri} is no JSON object: {error}"
        raise Rejected.because("config_uri", problem, "store one JSON object") from error


def store_config(objects: Objects, uri: str, config: Mapping[str, Any]) -> None:
    """Write the fully defaulted config where the workers read it."""
    bucket, name = split_uri(uri)
    objects.put(bucket, name, json.dumps(config, sort_keys=True, indent=2).encode())


def read_catalogue(objects: Objects, uri: str) -> tuple[Region, ...]:
    """Read the user's catalogue of places where one is set, else return the built-in map.

    Raises `Rejected` with every fault, each by its field and line.
    """
    if not uri:
        return built_in_regions()
    raw, text = _read_table(objects, "SF_COMPUTE_FALLBACK", uri)
    faults = catalogue_faults(raw, text)
    if faults:
        raise Rejected(replace(fault, field=f"SF_COMPUTE_FALLBACK: {fault.field}") for fault in faults)
    return parse_catalogue(raw)


def read_user_table(objects: Objects, setting: str, uri: str) -> Mapping[str, Any]:
    """Read the JSON object that a setting names; raises `Rejected` naming the setting."""
    return _read_table(objects, setting, uri)[0]


def _read_table(objects: Objects, setting: str, uri: str) -> tuple[Mapping[str, Any], str]:
    bucket, name = split_uri(uri)
    body = objects.read(bucket, name, limit=_MAX_BYTES)
    if body is None:
        raise Rejected.because(setting, f"{uri} does not exist", "upload the file or unset it")
    try:
        return read_json_object(body), body.decode()
    except ValueError as error:
        raise Rejected.because(setting, f"{uri} is no JSON object: {error}", "mend the file") from error


def check_panels(objects: Objects, plans: Iterable[JobPlan]) -> None:
    """Reject a panel that is not there or empty: it would cost a machine to find out. A table name is the worker's to read."""
    for uri in {plan.source_table for plan in plans if plan.source_table.startswith("gs://")}:
        stored = objects.stat(*split_uri(uri))
        if stored is None:
            raise Rejected.because(
                "data.source_table", f"{uri} does not exist", "upload the panel, or correct the URI"
            )
        if stored.size == 0:
            raise Rejected.because("data.source_table", f"{uri} is empty", "upload a panel with rows")
