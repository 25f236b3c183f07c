"""The functions' environment, and what the deployment shares with the local cloud: one set of names and limits."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from runtender.errors import Rejected
from runtender.local.topics.plane import plane_subscriptions, plane_topics
from runtender.settings import Settings


class Asked(dict):
    """An environment that remembers which variables it was asked for."""

    def __init__(self, *args):
        super().__init__(*args)
        self.names = set()

    def get(self, name, default=None):
        self.names.add(name)
        return super().get(name, default)


def known_settings():
    asked = Asked({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "c"})
    Settings.from_env(asked)
    return asked.names


def required_settings():
    with pytest.raises(Rejected) as rejected:
        Settings.from_env({})
    return {fault.field for fault in rejected.value.faults}


@pytest.fixture
def plane(checker):
    return checker.load(checker.INFRA / "modules/control-plane")


def given_by_terraform(plane):
    """The settings that the module makes, from `merge(var.settings, local.chosen, {...})`."""
    text = plane.locals["settings"] + plane.locals["chosen"]
    return set(re.findall(r"\bSF_[A-Z_]+", text))


def test_every_setting_that_terraform_gives_is_known(plane):
    given = given_by_terraform(plane)
    assert given
    assert given <= known_settings()


def test_every_setting_that_is_required_is_given(plane):
    assert required_settings()
    assert required_settings() <= given_by_terraform(plane)


def test_a_user_cannot_give_what_the_module_gives(plane):
    (_, guard) = plane.variables["settings"]["validation"]
    refused = set(re.findall(r"SF_[A-Z_]+", guard["condition"]))
    assert refused == given_by_terraform(plane) | {"SF_BACKEND"}


def test_the_settings_of_a_standing_cluster_are_known(checker):
    cluster = checker.load(checker.INFRA / "modules/gke")
    assert set(cluster.outputs["settings"]["value"]) <= known_settings()


def test_the_plane_starts_with_what_terraform_gives(values):
    environment = values['google_cloudfunctions2_function.plane["tick"]']["service_config"][0][
        "environment_variables"
    ]
    settings = Settings.from_env(environment)
    assert settings.cells_prefix == "gs://warehouse/forecasts/artifacts"
    assert settings.status_bucket == "plane-tests-sf-status"
    assert settings.compute_fallback == "gs://plane-tests-sf-code/places.json"


def test_the_topics_are_those_of_the_local_cloud(values):
    made = {
        value["name"] for address, value in values.items() if address.startswith("google_pubsub_topic.plane")
    }
    assert made == set(plane_topics(Settings.from_env({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "c"})))


@pytest.mark.parametrize("function", ["submit", "marker", "tick"])
def test_the_local_cloud_delivers_as_the_deployment_does(values, function):
    settings = Settings.from_env({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "c"})
    local = {one.name: one for one in plane_subscriptions(settings, "http://functions")}
    made = values[f'google_pubsub_subscription.push["{function}"]']
    twin = local[made["name"]]
    retry = made["retry_policy"][0]
    assert timedelta(seconds=made["ack_deadline_seconds"]) == twin.ack_deadline
    assert seconds(made["message_retention_duration"]) == twin.retention
    assert (seconds(retry["minimum_backoff"]), seconds(retry["maximum_backoff"])) == (
        twin.min_backoff,
        twin.max_backoff,
    )
    attempts = [policy["max_delivery_attempts"] for policy in made["dead_letter_policy"]]
    assert attempts == ([twin.max_attempts] if twin.dead_letter_topic else [])


def test_dead_letters_wait_where_the_command_line_looks(values):
    settings = Settings.from_env({"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "c"})
    assert values["google_pubsub_subscription.dead_letters"]["name"] == f"{settings.dead_letter_topic}-pull"


def seconds(text):
    return timedelta(seconds=int(text.removesuffix("s")))
