"""Metrics, alerts and the dashboard speak of what the code logs, of each other, and of the README; notifications fit their
schema.
"""

from __future__ import annotations

import ast
import json
import re
from datetime import UTC, datetime
from typing import cast

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory  # type: ignore[import-untyped]

from runtender.engine.announce import announce
from runtender.engine.plane import Plane
from runtender.ids import cluster_name, job_key
from runtender.model import Outcome, Run, SubmitKind
from runtender.runtimes.gce_vm import METHODS
from runtender.settings import Settings

METRIC = re.compile(r"logging_googleapis_com:user_\w+")
GOOGLE = {
    "pubsub_googleapis_com:subscription_num_undelivered_messages",
    "pubsub_googleapis_com:subscription_oldest_unacked_message_age",
    "run_googleapis_com:request_count",
    "run_googleapis_com:request_latencies_bucket",
}


@pytest.fixture
def plane(checker):
    return checker.load(checker.INFRA / "modules/control-plane")


@pytest.fixture(scope="module")
def logged(indexes):
    """Every message that the deployed code logs, by its first argument."""
    trees = [*indexes.sources().values(), ast.parse((indexes.ROOT / "functions/main.py").read_text())]
    return {
        node.args[0].value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "_LOG"
        and isinstance(node.args[0], ast.Constant)
    }


def alerts(values):
    return {
        value["index"]: value
        for address, value in values.items()
        if address.startswith("google_monitoring_alert_policy.")
    }


def queries(values):
    found = [
        each["conditions"][0]["condition_prometheus_query_language"][0]["query"]
        for each in alerts(values).values()
    ]
    tiles = json.loads(values["google_monitoring_dashboard.plane"]["dashboard_json"])["mosaicLayout"]["tiles"]
    sets = [data for tile in tiles for data in tile["widget"].get("xyChart", {}).get("dataSets", ())]
    return found, [data["timeSeriesQuery"]["prometheusQuery"] for data in sets]


def test_a_metric_counts_only_messages_that_the_code_logs(plane, logged):
    counted = {message for metric in plane.locals["log_metrics"].values() for message in metric["messages"]}
    assert counted
    assert counted <= logged


def test_a_filter_names_the_functions_and_the_message(values):
    ticks = values['google_logging_metric.counts["ticks"]']
    assert ticks["filter"] == (
        'resource.type="cloud_run_revision" '
        'resource.labels.service_name=("sf-on-marker" OR "sf-on-submit" OR "sf-on-tick") jsonPayload.message=("tick")'
    )


def test_queries_ask_for_metrics_that_there_are_and_each_is_asked_for(values):
    made = {
        "logging_googleapis_com:user_" + re.sub(r"\W", "_", value["name"])
        for address, value in values.items()
        if address.startswith("google_logging_metric.")
    }
    in_alerts, in_dashboard = queries(values)
    asked = {name for query in (*in_alerts, *in_dashboard) for name in METRIC.findall(query)}
    assert asked == made


def test_queries_are_whole(values):
    for query in (found for kind in queries(values) for found in kind):
        assert "${" not in query
        assert all(query.count(one) == query.count(other) for one, other in ("()", "[]", "{}"))
        assert query.count('"') % 2 == 0
        assert set(re.findall(r"\w+_googleapis_com:\w+", query)) <= GOOGLE | set(METRIC.findall(query))
        # A metric that counts log entries has as many kinds of resource as logs have.
        assert all("{monitored_resource=" in part for part in METRIC.sub("\n", query).splitlines()[1:])


def test_the_readme_tells_of_each_alert(checker, plane):
    text = (checker.INFRA / "README.md").read_text()
    told = set(
        re.findall(r"^\| `(\w+)` \|", text.partition("## Alerts")[2].partition("\n## ")[0], re.MULTILINE)
    )
    assert told == set(plane.locals["alerts"])


def test_each_alert_says_what_to_do(values):
    for name, policy in alerts(values).items():
        assert len(policy["documentation"][0]["content"]) > 40, name


def test_the_budget_of_creates_is_the_planes_own(values):
    default = Settings.from_env({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "c"}).api_budget
    condition = alerts(values)["api_budget"]["conditions"][0]["condition_prometheus_query_language"][0]
    assert condition["query"].endswith(f">= {default * 9 // 10}")


def test_the_audit_logs_are_asked_for_what_the_plane_calls(values):
    pattern = re.search(
        r'methodName=~"([^"]+)"', values['google_logging_metric.counts["refused_deletes"]']["filter"]
    )
    assert pattern is not None
    assert [method for method in METHODS if re.search(pattern[1], f"v1.{method}")] == [
        "compute.instances.delete"
    ]


@pytest.mark.parametrize("run", ["nightly-0123456789ab", "a" * 80 + "-0123456789ab"])
def test_a_jobs_own_cluster_is_told_by_its_name(values, run):
    pattern = re.search(
        r'cluster_name=~"([^"]+)"', values['google_logging_metric.clusters["clusters_created"]']["filter"]
    )
    assert pattern is not None
    assert re.search(pattern[1], cluster_name(job_key(run, "statistical", 1)))


# --- notifications


class Topic:
    """As much of a plane as an announcement needs: a topic that keeps its last message, and the topics' names."""

    def __init__(self):
        self.settings = Settings.from_env({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "c"})
        self.topics = self
        self.body = b""

    def publish(self, topic, body, attributes):
        assert topic == self.settings.notify_topic
        self.body = body
        return "1"


@pytest.fixture(scope="module")
def notification(indexes):
    """The message type of `notification.proto`, whose few kinds of fields are read here by hand."""
    text = (indexes.ROOT / "infra/modules/control-plane/notification.proto").read_text()
    file = descriptor_pb2.FileDescriptorProto(name="notification.proto", syntax="proto3")
    message = file.message_type.add(name="Notification")
    for kind, name, number in re.findall(
        r"^  (string|map<string, string>) (\w+) = (\d+);$", text, re.MULTILINE
    ):
        field = message.field.add(
            name=name, number=int(number), label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
        )
        field.type = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
        if kind != "string":
            entry = message.nested_type.add(name=f"{name.title()}Entry")
            entry.options.map_entry = True
            for key, place in (("key", 1), ("value", 2)):
                entry.field.add(name=key, number=place, label=field.label, type=field.type)
            field.label = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
            field.type, field.type_name = (
                descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
                f".Notification.{entry.name}",
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Notification"))


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "without a time"])
def test_what_the_plane_announces_fits_the_topics_schema(notification, finished, a_run):
    topic = Topic()
    announce(cast("Plane", topic), a_run(finished))
    read = json_format.Parse(topic.body, notification())
    assert (read.run_id, read.outcome, dict(read.labels)) == ("r-1", "PARTIAL", {"team": "demand"})


def test_a_word_that_the_schema_does_not_know_is_refused(notification):
    with pytest.raises(json_format.ParseError):
        json_format.Parse('{"run_id": "r-1", "more": "x"}', notification())


@pytest.fixture
def a_run():
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    def make(finished):
        return Run(
            run_id="r-1",
            kind=SubmitKind.TASK,
            request={},
            labels={"team": "demand"},
            requested_by="",
            families={},
            status="PARTIAL",
            outcome=Outcome.PARTIAL,
            created_at=moment,
            finished_at=moment if finished else None,
        )

    return make
