"""Submit messages that nobody would think of: none crashes the intake, none comes again for ever, each leaves its row.

`make fuzz` tries 10,000 of them.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from runtender.errors import Retryable
from runtender.forecast.families import MODELS_BY_FAMILY
from runtender.model import SubmitAction, SubmitKind
from runtender.wire.messages import peek_request_id

EXAMPLES = int(os.environ.get("RUNTENDER_FUZZ_EXAMPLES", "500"))
# Pub/Sub gives a message up after ten deliveries, each up to ten minutes after the last.
_MOST_DELIVERIES = 10
_LONGEST_BACKOFF_S = 600

# Becomes the id of the run that the message before started.
THAT_RUN = "THAT-RUN"
RUN_IDS = [THAT_RUN, "flights-0123456789ab", "unknown-0123456789ab", "a/b", "../x", "", "ü", "x" * 300]
MODELS = [*sorted({model for models in MODELS_BY_FAMILY.values() for model in models}), "tetha", ""]

text = st.text(st.characters(codec=None), max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=True, allow_infinity=True)
    | text
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


def or_anything(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What the field wants, mostly; else whatever JSON can say."""
    return st.one_of(strategy, strategy, strategy, anything)


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


spans = st.sampled_from(["90m", "1h30m", "45s", "0s", "-1m", "1e9h", "9" * 40 + "h", "1d", "", "m"])
names = st.lists(st.sampled_from(MODELS) | text, max_size=4)
labels = st.dictionaries(
    st.sampled_from(["team", "sf-x", "goog-y", "A", "a" * 64]) | text, text | scalars, max_size=3
)
override = st.dictionaries(
    st.sampled_from(["hardware", "gpu_type", "machine_type", "accelerator_count", "workers", "spot"]) | text,
    scalars,
    max_size=3,
)
data = st.fixed_dictionaries(
    {
        "source_table": or_anything(
            st.sampled_from(["gs://wh/panel.csv", "gs://wh/none.csv", "t", "gs://wh", ""])
        )
    },
    optional={
        "freq": or_anything(st.sampled_from(["D", "W", "M", "h", "?"])),
        "horizon": or_anything(st.integers(-1, 400)),
        "ts_id_col": or_anything(text),
        "series_limit": or_anything(st.integers(-1, 10**12)),
    },
)
forecasts = st.fixed_dictionaries(
    {},
    optional={
        "run_name": or_anything(st.sampled_from(["flights", "Ünï", "-", "x" * 200, ""])),
        "python_runtime": or_anything(st.sampled_from(["gce", "gke", "spark", "bigquery"])),
        "data": or_anything(data),
        "models": or_anything(names),
        "compute": anything,
        "evaluation": anything,
    },
)
tasks = st.fixed_dictionaries(
    {},
    optional={
        "name": or_anything(text),
        "image": or_anything(text),
        "command": or_anything(st.lists(text, max_size=3)),
        "args": or_anything(st.lists(text, max_size=3)),
        "env": or_anything(st.dictionaries(text, text, max_size=3)),
        "workers": or_anything(st.integers(-1, 3)),
        "hardware": or_anything(st.sampled_from(["cpu", "gpu"])),
        "gpu_type": or_anything(st.sampled_from(["nvidia-l4", "nvidia-h100-80gb", "none"])),
        "accelerator_count": or_anything(st.integers(-1, 20)),
        "machine_type": or_anything(st.sampled_from(["n2-standard-8", "e2-micro", "auto"])),
        "runtime": or_anything(st.sampled_from(["gce", "gke"])),
    },
)
fields: dict[str, st.SearchStrategy[Any]] = {
    "action": or_anything(st.sampled_from(list(SubmitAction))),
    "kind": or_anything(st.sampled_from(list(SubmitKind))),
    "request_id": or_anything(text | st.sampled_from(["r-1", "a/b", "x" * 600])),
    "run_id": or_anything(st.sampled_from(RUN_IDS)),
    "job_key": or_anything(st.sampled_from(["sf-flights-0123456789ab-statistical-a1", "sf-x", "jobs/x", ""])),
    "config_uri": or_anything(
        st.sampled_from(["gs://wh/config.json", "gs://wh/panel.csv", "gs://none/x", "s3://x"])
    ),
    "families": or_anything(names),
    "models": or_anything(names),
    "overrides": or_anything(
        st.dictionaries(st.sampled_from(["statistical", "ml"]) | text, override, max_size=2)
    ),
    "force": or_anything(st.booleans()),
    "every": or_anything(spans),
    "labels": or_anything(labels),
    "limits": or_anything(
        st.fixed_dictionaries({}, optional={"run": spans, "capacity_wait": spans, "cost_usd": scalars})
    ),
    "image": or_anything(text),
    "package_uri": or_anything(st.sampled_from(["gs://code/worker.zip", "x"])),
    "entrypoint": or_anything(st.sampled_from(["a.b:main", "a.b", ":"])),
    "requested_by": or_anything(text),
}
messages = st.fixed_dictionaries(
    {},
    optional={**fields, "config": forecasts | tasks | anything, "unknown": anything},
)
# Right, so that the planner, too, gets to see them.
configs = st.fixed_dictionaries(
    {
        "run_name": st.sampled_from(["a", "b"]),
        "python_runtime": st.just("gce"),
        "data": st.just({"source_table": "gs://wh/panel.csv"}),
        "models": st.lists(
            st.sampled_from(["theta", "autoets", "lightgbm", "nhits"]), min_size=1, max_size=3, unique=True
        ),
    }
)
right_messages = st.fixed_dictionaries(
    {"config": configs},
    optional={
        "force": st.booleans(),
        "labels": st.just({"team": "demand"}),
        "limits": st.just({"run": "90m"}),
        "request_id": st.sampled_from(["r-1", "r-2"]),
    },
) | st.fixed_dictionaries(
    {"action": st.sampled_from(["cancel", "retry"]), "run_id": st.just(THAT_RUN)},
    optional={"request_id": st.sampled_from(["r-1", "r-2"]), "families": names},
)
# And nearly so: one field of them is anything.
nearly_right_messages = st.builds(
    lambda message, field: {**message, **field},
    right_messages,
    st.sampled_from(sorted(fields)).flatmap(lambda name: st.fixed_dictionaries({name: fields[name]})),
)
bodies = st.one_of(
    right_messages.map(as_json),
    right_messages.map(as_json),
    nearly_right_messages.map(as_json),
    messages.map(as_json),
    anything.map(as_json),
    st.binary(max_size=64),
    st.integers(1, 5000).map(lambda depth: b"[" * depth + b"]" * depth),
    st.integers(1, 5000).map(lambda depth: b'{"config":' * depth + b"1" + b"}" * depth),
)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(first=bodies, second=bodies)
def test_every_message_is_accepted_a_duplicate_or_rejected_with_a_row(new_world, first, second):
    world = new_world()
    world.objects.put("wh", "config.json", b'{"run_name": "a"}')
    run_id = THAT_RUN
    for number, told in enumerate((first, second, first)):
        body = told.replace(THAT_RUN.encode(), run_id.encode())
        receipt = delivered(world, body, f"m-{number}")
        run_id = receipt.run_id or run_id
        assert receipt.state in {"accepted", "duplicate", "rejected"}
        event(receipt.state)
        assert (receipt.state == "rejected") == bool(receipt.errors) or receipt.state == "duplicate"
        # A step is a look that changes nothing, and leaves no row.
        if receipt.state == "rejected" or not is_step(body):
            assert world.request(peek_request_id(body) or f"m-{number}")["state"] == receipt.state
    keys = {document.data["job_key"] for document in world.store.find("jobs")}
    listed = {entry["job_key"] for run in world.store.find("runs") for entry in run.data["families"].values()}
    assert listed <= keys, "no header speaks of a job that is not there"


def delivered(world, body, message_id):
    """Deliver a message as Pub/Sub does, again and again, until it is acknowledged; fail if it never is."""
    published_at = world.clock.now()
    for delivery in range(_MOST_DELIVERIES):
        try:
            return world.send(body, message_id, published_at)
        except Retryable:
            world.clock.moment += timedelta(seconds=min(10 * 2**delivery, _LONGEST_BACKOFF_S))
    raise AssertionError(f"it would have come again for ever: {body!r}")


def is_step(body):
    message = json.loads(body)
    return isinstance(message, dict) and message.get("action") == "step"
