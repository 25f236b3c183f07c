"""What comes in from outside as JSON Schemas, for editors and for senders in other languages.

They are made from the tables that the readers themselves use, and lie beside the package in `schemas/`; `make schemas`
writes them anew. They say less than the readers: what fields mean together only a reader can check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from runtender.forecast import config, task
from runtender.forecast.blocks import (
    Capacity,
    Compute,
    EnsembleCompute,
    FamilyOverride,
    PanelData,
    ProfilePolicy,
    RunConfig,
)
from runtender.forecast.families import FAMILY_OF, MODELS_BY_FAMILY
from runtender.forecast.validation import Kind, parameter
from runtender.model import MarkerStatus, Reason, SubmitAction, SubmitKind, Writer
from runtender.wire import markers, messages

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DURATION: Schema = {"type": "string", "pattern": r"^([0-9]{1,9}[dhms])+$"}
_STORED: Schema = {"type": "string", "pattern": "^gs://[^/]+/.+"}
_NAMES: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
_JSON_TYPES = {str: "string", int: "integer", bool: "boolean"}


def schema_documents() -> dict[str, str]:
    """Return every schema as the text of its file, by file name."""
    documents = {
        "config": _document("A run config: what to forecast, and on what", _config()),
        "task": _document(
            "A plain container to run once", _record(task.TASK_FIELDS, task.TaskConfig, ["name"])
        ),
        "message": _document("A message of the submit topic", _message()),
        "marker": _document(
            "A status marker: how a worker says that it has started, or how it ended", _marker()
        ),
    }
    return {f"{name}.json": f"{json.dumps(document, indent=2)}\n" for name, document in documents.items()}


def _document(title: str, schema: Schema) -> Schema:
    return {"$schema": _DIALECT, "title": title, **schema}


def _record(
    kinds: Mapping[str, Kind], record: type | None, required: list[str] | None = None, **inner: Schema
) -> Schema:
    """Return the schema of an object with these fields; blocks have schemas of their own, defaults come from `record`."""
    defaults = _defaults(record)
    properties = {
        name: {**kind.schema, **defaults.get(name, {}), **inner.get(name, {})} for name, kind in kinds.items()
    }
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def _defaults(record: type | None) -> Mapping[str, Schema]:
    """Return the defaults that are plain values, as JSON writes them."""
    if record is None or not is_dataclass(record):
        return {}
    plain = {each.name: each.default for each in fields(record)}
    return {
        name: {"default": list(value) if isinstance(value, tuple) else value}
        for name, value in plain.items()
        if isinstance(value, str | int | float | tuple)
    }


def _config() -> Schema:
    models = {"enum": [*FAMILY_OF]}
    return _record(
        config.CONFIG_FIELDS,
        RunConfig,
        ["run_name", "data", "models"],
        data=_record(config.DATA_FIELDS, PanelData, ["source_table"]),
        models={"items": models, "uniqueItems": True},
        compute=_compute(),
        model_params={
            "propertyNames": models,
            "additionalProperties": {"type": "object", "additionalProperties": parameter().schema},
        },
    )


def _compute() -> Schema:
    policy = _record(config.POLICY_FIELDS, None)
    capacity = _record(
        config.CAPACITY_FIELDS,
        Capacity,
        None,
        retry=_record(config.RETRY_FIELDS, None),
        **dict.fromkeys(config.CAPACITY_SERVICES, policy),
    )
    return _record(
        {**config.COMPUTE_FIELDS, **config.LEGACY_FIELDS},
        Compute,
        None,
        gpu_fraction={"default": "auto"},
        profile=_record(config.PROFILE_FIELDS, ProfilePolicy),
        capacity=capacity,
        families={
            "propertyNames": {"enum": [*MODELS_BY_FAMILY]},
            "additionalProperties": _record(config.FAMILY_FIELDS, FamilyOverride),
        },
        ensemble=_record(config.ENSEMBLE_FIELDS, EnsembleCompute),
    )


def _message() -> Schema:
    text: Schema = {"type": "string", "minLength": 1, "maxLength": 2048}
    overrides = {name: {"type": _JSON_TYPES[kind]} for name, kind in messages.OVERRIDES.items()}
    known: Mapping[str, Schema] = {
        "action": {"enum": [*SubmitAction], "default": SubmitAction.SUBMIT},
        "kind": {"enum": [*SubmitKind], "default": SubmitKind.FORECAST},
        "request_id": {**text, "maxLength": messages.MAX_REQUEST_ID},
        "run_id": {**text, "maxLength": messages.MAX_RUN_ID, "pattern": _whole(messages.RUN_ID)},
        "config": {"type": "object"},
        "config_uri": _STORED,
        "families": _NAMES,
        "models": _NAMES,
        "overrides": {"type": "object", "additionalProperties": _closed(overrides)},
        "force": {"type": "boolean", "default": False},
        "every": _DURATION,
        "labels": {
            "type": "object",
            "maxProperties": messages.MAX_LABELS,
            "propertyNames": {"pattern": _whole(messages.LABEL_KEY)},
            "additionalProperties": {"type": "string", "pattern": _whole(messages.LABEL_VALUE)},
        },
        "limits": _closed(
            {
                "capacity_wait": _DURATION,
                "run": _DURATION,
                "cost_usd": {"type": "number", "exclusiveMinimum": 0},
            }
        ),
        "priority": {
            "type": "integer",
            "minimum": -messages.MAX_PRIORITY,
            "maximum": messages.MAX_PRIORITY,
            "default": 0,
        },
        "package_uri": _STORED,
        "entrypoint": {**text, "pattern": _whole(messages.ENTRYPOINT)},
    }
    return {**_closed({name: known.get(name, text) for name in messages.KEYS}), "allOf": _needed_by_action()}


def _needed_by_action() -> list[Schema]:
    one_config: Schema = {"oneOf": [{"required": ["config"]}, {"required": ["config_uri"]}]}
    needs: Mapping[SubmitAction, Schema] = {
        SubmitAction.SUBMIT: one_config,
        SubmitAction.CANCEL: {"required": ["run_id"]},
        SubmitAction.RETRY: {"required": ["run_id"]},
        SubmitAction.STEP: {"required": ["job_key"]},
    }
    return [
        {
            "if": {
                "properties": {"action": {"const": action}},
                # Without an action it is a submit.
                **({} if action is SubmitAction.SUBMIT else {"required": ["action"]}),
            },
            "then": need,
        }
        for action, need in needs.items()
    ]


def _marker() -> Schema:
    text: Schema = {"type": ["string", "null"]}
    number: Schema = {"type": ["number", "null"]}
    known: Mapping[str, Schema] = {
        "status": {"enum": [*MarkerStatus]},
        "exit_code": {
            "type": ["integer", "null"],
            "minimum": -markers.MAX_EXIT_CODE,
            "maximum": markers.MAX_EXIT_CODE,
        },
        **dict.fromkeys(
            ("boot_epoch", "exec_start_epoch", "end_epoch", "execute_s", "attempt", "placement"), number
        ),
        "writer": {"enum": [*Writer]},
        "preempted": {"type": "boolean"},
        "reason": {"enum": [*Reason, None]},
    }
    properties = {name: known.get(name, text) for name in markers.KEYS}
    # A reader keeps what it does not know: older planes read newer workers' markers.
    return {"type": "object", "properties": properties, "required": ["status"], "additionalProperties": True}


def _closed(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _whole(pattern: re.Pattern[str]) -> str:
    return f"^(?:{pattern.pattern})$"
