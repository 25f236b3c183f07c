"""`doctor`: a healthy plane is said to be one; each thing that is wrong is found, with what to do about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from runtender.cli.main import cli
from runtender.errors import Rejected, Retryable
from runtender.local.store import MemoryStore
from runtender.model import Cleanup, CleanupState, LedgerEntry, Verdict, Walk
from runtender.ports import ApiAnswer, Create

CHECKS = [
    "store",
    "buckets",
    "topics",
    "cluster",
    "clock",
    "ticks",
    "cleanups",
    "orphans",
    "refusals",
    "dead letters",
]


CLUSTER = {
    "name": "standing",
    "location": "us-east1",
    "selfLink": "https://container.googleapis.com/v1/projects/demo/locations/us-east1/clusters/standing",
    "endpoint": "192.0.2.1",
    "currentMasterVersion": "1.33.1-gke.1",
}


class Gke:
    """A GKE that answers so for a cluster, and tells the version of one that is there."""

    def __init__(self, answer):
        self._answer = answer

    def send(self, request):
        asks_version = request.method_id == "kubernetes.version.get"
        return ApiAnswer(status=200, body={"minor": "33"}) if asks_version else self._answer


@pytest.fixture
def examined(runtender, parsed):
    """Run the doctor and return its exit code and what it found beside what is well."""

    def examine(**changes):
        result = runtender("doctor", "--format", "json", **changes)
        document = parsed(result, "json", "checkup")
        found = [each for each in document["findings"] if each["level"] != "ok"]
        assert document["healthy"] == (result.exit_code == 0)
        assert all(each["remedy"] for each in found if each["check"] != "clock" or each["level"] == "problem")
        return result.exit_code, [(each["check"], each["level"], each["what"]) for each in found]

    return examine


def test_a_healthy_plane_passes_every_check(runtender, make, keep, parsed):
    job = make.ended_job("SUCCEEDED")
    keep(make.run(job), job)
    document = parsed(runtender("doctor", "--format", "json"), "json", "checkup")

    assert document["healthy"] is True
    assert [(each["check"], each["level"]) for each in document["findings"]] == [
        (each, "ok") for each in CHECKS
    ]


def test_a_store_out_of_reach_is_said_once(examined):
    class Unreachable(MemoryStore):
        def find(self, *_arguments, **_options):
            raise Retryable("cannot read runs from Firestore now: no route")

    assert examined(store=Unreachable()) == (
        1,
        [("store", "problem", "cannot read runs from Firestore now: no route")],
    )


def test_every_bucket_that_is_not_there_is_named(examined, world):
    settings = replace(world.settings, code_bucket="a", status_bucket="b", cells_prefix="gs://c")
    code, found = examined(settings=settings)

    assert code == 1
    assert [(check, what.split(":")[1]) for check, _, what in found] == [
        ("buckets", f"//{b}/runs/") for b in "abc"
    ]


def test_a_topic_that_is_not_there_is_named(examined, world):
    code, found = examined(settings=replace(world.settings, tick_topic="sf-tock"))

    assert (code, found) == (1, [("topics", "problem", "there is no topic sf-tock in project demo")])


@pytest.mark.parametrize(
    ("answer", "code", "levels", "words"),
    [
        (ApiAnswer(status=200, body={**CLUSTER, "status": "RUNNING"}), 0, [], ""),
        (ApiAnswer(status=200, body={**CLUSTER, "status": "STOPPING"}), 1, ["problem"], "is STOPPING"),
        (ApiAnswer(status=404), 1, ["problem"], "there is none in us-east1"),
        (ApiAnswer(status=403, text="Required permission"), 0, ["note"], "Required permission"),
        (ApiAnswer(status=503), 1, ["problem"], "503"),
    ],
    ids=["there", "on its way out", "not there", "not to be looked at", "out of reach"],
)
def test_the_planes_cluster_is_looked_up(examined, world, answer, code, levels, words):
    settings = replace(world.settings, gke_cluster="us-east1/standing")
    result, found = examined(settings=settings, clusters=Gke(answer))

    assert (result, [(check, level) for check, level, _ in found]) == (
        code,
        [("cluster", level) for level in levels],
    )
    assert all(words in what for _, _, what in found)


@pytest.mark.parametrize(
    ("offset", "code", "words"),
    [
        (timedelta(seconds=5), 0, None),
        (timedelta(minutes=-2), 1, "this machine's clock is 120 s ahead"),
        (timedelta(minutes=2), 1, "this machine's clock is 120 s behind"),
    ],
    ids=["little", "ahead", "behind"],
)
def test_a_clock_that_is_wrong_is_found(examined, offset, code, words):
    result, found = examined(server_time=lambda: datetime.now(UTC) + offset)

    assert result == code
    assert [what for _, _, what in found] == ([words] if words else [])


def test_a_server_without_a_clock_is_no_problem(examined):
    code, found = examined(server_time=lambda: None)

    assert (code, [level for _, level, _ in found]) == (0, ["note"])


def test_jobs_that_nobody_looks_at_are_named(examined, make, keep):
    now = datetime.now(UTC)
    for number in range(7):
        job = make.job(attempt=number + 1, wake_at=now - timedelta(minutes=20 - number))
        keep(make.run(job, run_id=f"run-{number}"), job)
    job = make.job(attempt=9, wake_at=now - timedelta(seconds=70))
    keep(make.run(job, run_id="run-9"), job)
    code, [(check, _, what)] = examined()

    assert (code, check) == (1, "ticks")
    assert "statistical-a1, " in what
    assert what.endswith("-a5 and 2 more")


def test_a_cleanup_that_is_stuck_names_what_is_left(examined, make, keep):
    cleanup = Cleanup(state=CleanupState.STUCK, reason="403 compute.instances.delete", tries=6)
    job = make.ended_job("SUCCEEDED", cleanup=cleanup)
    keep(make.run(job), job)
    code, [(check, _, what)] = examined()

    assert (code, check) == (1, "cleanups")
    assert "vm sf-flights-0123456789ab-statistical-a1 in us-central1-b" in what
    assert what.endswith("cannot be removed: 403 compute.instances.delete")


def test_machines_without_a_job_are_told_while_they_are_news(examined, store):
    for uid, age in (("1", timedelta(hours=1)), ("2", timedelta(days=3))):
        sighting = {"name": f"vm-{uid}", "location": "us-east1-b", "seen_at": datetime.now(UTC) - age}
        store.commit([Create(path=f"orphans/{uid}", data=sighting)])

    assert examined() == (
        0,
        [("orphans", "note", "vm-1 in us-east1-b was seen although no job lists it any more")],
    )


def _entry(make, verdict, code, message):
    return LedgerEntry(
        candidate="r/z", verdict=verdict, code=code, message=message, elapsed_s=1.0, at=make.ACCEPTED
    )


def test_refusals_that_nobody_understood_are_told_by_code(examined, make, keep):
    told = [
        (Verdict.TRANSIENT_CAPACITY, "TYPHOON", "The moon is in the way."),
        (Verdict.TRANSIENT_CAPACITY, "TYPHOON", "Again."),
        (Verdict.TRANSIENT_CAPACITY, "ZONE_RESOURCE_POOL_EXHAUSTED", "words"),
        (Verdict.TRANSIENT_CAPACITY, "503", "the zone does not have enough resources"),
        (Verdict.TRANSIENT_CAPACITY, "UNANSWERED", "the create was never answered"),
        (Verdict.HARD_CEILING, "NOT_FOUND", "words"),
    ]
    job = make.ended_job("NO_CAPACITY", walk=Walk(ledger=tuple(_entry(make, *row) for row in told)))
    keep(make.run(job), job)

    assert examined() == (
        0,
        [
            (
                "refusals",
                "note",
                "TYPHOON is not known, and was taken for a stock-out 2 times: The moon is in the way.",
            )
        ],
    )


def test_dead_letters_are_counted_and_stay(examined, dispatcher):
    for _ in range(3):
        dispatcher.publish("sf-dead-letter", b"x", {}, datetime.now(UTC))
    for _ in range(2):
        assert examined() == (0, [("dead letters", "note", "3 wait for somebody")])


def test_a_check_that_cannot_be_made_stops_no_other(examined, dispatcher):
    class Forbidden:
        def has_topic(self, _topic):
            raise Rejected.because("topics/sf-submit", "Pub/Sub refuses", "ask")

        def pull(self, *_arguments):
            raise Retryable("Pub/Sub does not answer now")

    code, found = examined(subscriptions=Forbidden())

    assert code == 1
    assert [(check, level) for check, level, _ in found] == [
        ("topics", "problem"),
        ("dead letters", "problem"),
    ]


class TestSettings:
    @pytest.fixture
    def doctor(self, tmp_path, monkeypatch):
        """The doctor of whoever is in this folder."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        for name in ("SF_BACKEND", "SF_PROJECT_ID", "SF_CODE_BUCKET", "SF_PLANE_ID", "SF_STORE_PATH"):
            # What a command adopts, it leaves in the environment of its process.
            monkeypatch.setenv(name, "")

        def run(*arguments, form="json"):
            return CliRunner().invoke(cli, [*arguments, "doctor", "--format", form])

        return run

    def test_who_won_is_shown_also_where_the_plane_cannot_be_reached(
        self, doctor, tmp_path, monkeypatch, parsed
    ):
        monkeypatch.setenv("SF_BACKEND", "embedded")
        monkeypatch.setenv("SF_STORE_PATH", str(tmp_path / "missing" / "store.db"))
        monkeypatch.setenv("SF_TOPICS_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setenv("SF_PROJECT_ID", "of-env")
        (tmp_path / ".runtender.toml").write_text('project_id = "of-file"\ncode_bucket = "c"')
        result = doctor("--set", "plane_id=blue")
        document = parsed(result, "json", "checkup")
        settings = {each.pop("name"): each for each in document["settings"]}

        assert result.exit_code == 1
        assert settings["SF_PROJECT_ID"] == {
            "value": "of-env",
            "source": "environment",
            "where": "",
            "overruled": ["project file"],
        }
        assert settings["SF_CODE_BUCKET"]["where"] == str(tmp_path / ".runtender.toml")
        assert settings["SF_PLANE_ID"]["source"] == "flag"
        (finding,) = document["findings"]
        assert finding["check"] == "store"

    def test_settings_that_are_wrong_are_findings(self, doctor, monkeypatch, parsed):
        monkeypatch.setenv("SF_PROJECT_ID", "p")
        document = parsed(doctor(), "json", "checkup")

        assert document["healthy"] is False
        assert [each["what"] for each in document["findings"]] == ["SF_CODE_BUCKET: is not set"]
        assert [each["name"] for each in document["settings"]] == ["SF_PROJECT_ID"]

    def test_no_plane_at_all_is_one(self, doctor, parsed):
        result = doctor()

        assert result.exit_code == 1
        assert "runtender local up" in parsed(result, "json", "checkup")["findings"][0]["what"]

    def test_the_tables_name_settings_and_checks(self, doctor, tmp_path, monkeypatch):
        monkeypatch.setenv("SF_PROJECT_ID", "p")
        lines = doctor(form="table").stdout.splitlines()

        assert lines[0].split() == ["SETTING", "VALUE", "FROM", "WHERE", "OVERRULED"]
        assert [line for line in lines if line.startswith("settings  problem  SF_CODE_BUCKET")] != []
