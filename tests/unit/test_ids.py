"""Names: exact where workers and queries depend on them, legal and distinct everywhere."""

from __future__ import annotations

import re
import string
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender import ids

DIGEST = "0123456789ab"
RUN = f"my-run-{DIGEST}"
RFC_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LONG_KEY = f"sf-a-very-long-descriptive-run-name-that-keeps-going-{DIGEST}-deep_learning-a2"
NONCE = "00112233445566aa"

run_ids = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+){0,4}", fullmatch=True)
tokens = st.sampled_from(sorted(ids.JOB_TOKENS))
attempts = st.integers(min_value=1, max_value=999)
keys = st.text(alphabet=string.ascii_letters + string.digits + "-_.: ü", max_size=200)


@pytest.mark.parametrize(
    ("family", "attempt", "key"),
    [
        pytest.param("deep_learning", 1, f"sf-{RUN}-deep_learning-a1", id="acceptance-A1"),
        pytest.param("statistical", 1, f"sf-{RUN}-statistical-a1", id="acceptance-A2"),
        pytest.param("ensemble", 3, f"sf-{RUN}-ensemble-a3", id="acceptance-A2 third attempt"),
        pytest.param("task", 2, f"sf-{RUN}-task-a2", id="a plain task"),
    ],
)
def test_a_job_key_names_run_family_and_attempt(family, attempt, key):
    assert ids.job_key(RUN, family, attempt) == key


@pytest.mark.parametrize(
    ("run_id", "family", "attempt", "words"),
    [
        pytest.param(RUN, "stats", 1, "unknown job family", id="acceptance-A3"),
        pytest.param(RUN, "statistical", 0, "attempt must be >= 1", id="acceptance-A4"),
        pytest.param("a/b", "ml", 1, "is no run id", id="a run id that would leave its folder"),
    ],
)
def test_a_job_key_of_nothing_known_is_refused(run_id, family, attempt, words):
    with pytest.raises(ValueError, match=words):
        ids.job_key(run_id, family, attempt)


@pytest.mark.parametrize("attempt", [1, 2, 17])
@pytest.mark.parametrize("family", sorted(ids.JOB_TOKENS), ids=lambda family: f"acceptance-A5 {family}")
def test_a_job_key_is_read_back_whole(family, attempt):
    parts = ids.JobKey(run_id=RUN, family=family, attempt=attempt)
    assert ids.parse_job_key(ids.job_key(RUN, family, attempt)) == parts


@given(run_id=run_ids, family=tokens, attempt=attempts)
def test_any_job_key_is_read_back_whole(run_id, family, attempt):
    parts = ids.JobKey(run_id=run_id, family=family, attempt=attempt)
    assert ids.parse_job_key(ids.job_key(run_id, family, attempt)) == parts


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("not-a-job", id="acceptance-A6 no job"),
        pytest.param(f"sf-{RUN}-statistical", id="acceptance-A6 no attempt"),
        pytest.param(f"sf-{RUN}-bogus-a1", id="acceptance-A6 no family"),
        pytest.param("statistical-a1", id="acceptance-A6 no run"),
        pytest.param(f"sf-{RUN}-ml-a0", id="attempt zero"),
        pytest.param(f"sf-{RUN}-ml-a01", id="another spelling of attempt 1"),
        pytest.param(f"sf-{RUN}-ml-a1\n", id="a line end"),
        pytest.param(f"sf-../{RUN}-ml-a1", id="a path"),
        pytest.param(f"sf-{RUN}-ml-a{'9' * 5000}", id="a number without end"),
    ],
)
def test_anything_else_is_no_job_key(text):
    assert ids.parse_job_key(text) is None


@pytest.mark.parametrize(
    ("family", "token"),
    [
        pytest.param("ml", "ml_repair", id="acceptance-A7"),
        pytest.param("ml_repair", "ml_repair", id="acceptance-A7 again"),
    ],
)
def test_a_repair_token_is_its_familys(family, token):
    assert ids.repair_token(family) == token
    assert ids.base_family(token) == "ml"


@pytest.mark.parametrize("family", ["ensemble", "task"], ids=["acceptance-A7 ensemble", "task"])
def test_what_has_nothing_to_repair_has_no_repair_token(family):
    with pytest.raises(ValueError, match="no repair token"):
        ids.repair_token(family)


@pytest.mark.parametrize(
    ("latest", "force", "choice"),
    [
        pytest.param(None, False, (1, True), id="acceptance-A8 first"),
        pytest.param(None, True, (1, True), id="acceptance-A8 first, forced"),
        pytest.param(1, False, (1, False), id="acceptance-A8 again"),
        pytest.param(1, True, (2, True), id="acceptance-A8 forced"),
    ],
)
def test_a_new_attempt_is_made_only_where_it_is_the_first_or_forced(latest, force, choice):
    assert ids.next_attempt(latest, force=force) == choice


@pytest.mark.parametrize(
    ("key", "instance", "job"),
    [
        pytest.param(
            f"sf-{RUN}-deep_learning_repair-a1",
            f"sf-{RUN}-deep-learning-repair-a1",
            f"sf-{RUN}-deep-learning-repair-a1",
            id="acceptance-A9",
        ),
        pytest.param(
            LONG_KEY,
            f"sf-tive-run-name-that-keeps-going-{DIGEST}-deep-learning-a2",
            f"sf-me-that-keeps-going-{DIGEST}-deep-learning-a2",
            id="acceptance-A11 and acceptance-A12",
        ),
        pytest.param(
            f"sf-monthly-retail-demand-plan-{DIGEST}-ml-a1",
            f"sf-monthly-retail-demand-plan-{DIGEST}-ml-a1",
            f"sf-monthly-retail-demand-plan-{DIGEST}-ml-a1",
            id="acceptance-A14 job name",
        ),
        pytest.param(
            "gke-smoke-1234567890ab:deep_learning:1",
            "gke-smoke-1234567890ab-deep-learning-1",
            "gke-smoke-1234567890ab-deep-learning-1",
            id="acceptance-A15",
        ),
        pytest.param("__x__", "x", "x", id="acceptance-A16"),
        pytest.param("", "j", "j", id="acceptance-A16 empty"),
        pytest.param("9lives_RUN.v2", "j-9lives-run-v2", "j-9lives-run-v2", id="acceptance-A17"),
        pytest.param("123-x", "j-123-x", "j-123-x", id="a digit first"),
    ],
)
def test_platform_ids_keep_the_tail_of_a_key(key, instance, job):
    assert (ids.gce_instance_id(key), ids.gke_job_id(key)) == (instance, job)


@pytest.mark.parametrize(
    ("name", "limit"),
    [(ids.gce_instance_id, 63), (ids.gke_job_id, 52)],
    ids=["acceptance-A18 VM", "acceptance-A18 Job"],
)
@given(key=keys)
def test_platform_ids_are_legal_names(name, limit, key):
    assert RFC_1035.fullmatch(name(key))
    assert len(name(key)) <= limit


@given(one=keys, other=keys)
def test_clusters_of_different_jobs_have_different_names(one, other):
    assert RFC_1035.fullmatch(ids.cluster_name(one))
    assert len(ids.cluster_name(one)) <= 40
    assert (ids.cluster_name(one) == ids.cluster_name(other)) == (one == other)


@given(one=keys, other=keys)
def test_ray_clusters_of_different_runs_have_different_names(one, other):
    assert RFC_1035.fullmatch(ids.ray_cluster_name(one))
    assert len(ids.ray_cluster_name(one)) <= 53
    assert (ids.ray_cluster_name(one) == ids.ray_cluster_name(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(LONG_KEY, LONG_KEY.replace("a2", "a3"), id="acceptance-Z12 attempts of a long run name"),
        pytest.param("x" * 40, "x" * 41, id="acceptance-Z12 one character more"),
        pytest.param(
            LONG_KEY, LONG_KEY.replace("deep_learning", "ml"), id="acceptance-A13 (the plane's own)"
        ),
        pytest.param(
            f"sf-monthly-retail-demand-plan-{DIGEST}-ml-a1",
            f"sf-monthly-retail-demand-plan-{DIGEST}-statistical-a1",
            id="acceptance-A14 (the plane's own): families of one run",
        ),
        pytest.param("sf-a_b", "sf-a-b", id="characters that become the same"),
    ],
)
def test_keys_that_look_alike_when_cut_still_get_two_clusters(one, other):
    assert ids.cluster_name(one) != ids.cluster_name(other)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("My Run!!", "my-run", id="acceptance-H19"),
        pytest.param("---", "run", id="acceptance-H19 nothing left"),
        pytest.param("Überlauf 2", "berlauf-2", id="letters outside a-z"),
    ],
)
def test_a_slug_keeps_letters_and_digits(name, expected):
    assert ids.slug(name) == expected


def test_a_run_id_is_the_slug_and_the_digest_of_the_canonical_config():
    assert ids.run_id("My Run!!", {"a": 1}) == "my-run-015abd7f5cc5"


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=6))
def test_a_run_id_does_not_depend_on_the_order_of_keys(config):
    reordered = dict(reversed(config.items()))
    assert ids.run_id("r", config) == ids.run_id("r", reordered)


@pytest.mark.parametrize("uri", [pytest.param(f"gs://b/runs/r-{DIGEST}.json", id="acceptance-H21")])
def test_a_config_lies_below_runs(uri):
    assert ids.config_uri("b", f"r-{DIGEST}") == uri


def test_every_try_has_its_own_nonce_and_request_id():
    tries = [(placement, number) for placement in range(20) for number in range(20)]
    assert len({ids.nonce("sf-r-ml-a1", *each) for each in tries}) == len(tries)
    assert len({ids.request_uuid("sf-r-ml-a1", 1, *each) for each in tries}) == len(tries)


def test_nonces_and_request_ids_never_change_between_releases():
    assert ids.nonce("sf-r-ml-a1", 0, 0) == "e752cc8444deb078"
    assert ids.request_uuid("sf-r-ml-a1", 1, 0, 0) == "dd94c5ea-285c-5ac5-8a7b-f561be85d98c"
    assert ids.key_digest("sf-r-ml-a1") == "6849324e60ecd21f"


@given(key=keys, attempt=attempts, placement=attempts, number=attempts)
def test_a_request_id_is_a_uuid(key, attempt, placement, number):
    text = ids.request_uuid(key, attempt, placement, number)
    assert uuid.UUID(text).int != 0
    assert str(uuid.UUID(text)) == text


@given(st.text())
def test_any_request_id_has_a_document(request_id):
    assert re.fullmatch(r"[0-9a-f]{32}", ids.request_document_id(request_id))


def test_a_request_id_with_half_a_character_has_a_document_too():
    assert len(ids.request_document_id("\ud800")) == 32


def test_a_claim_is_the_same_within_a_period_and_another_after_it():
    every = timedelta(hours=1)
    start = datetime(2025, 3, 1, 12, tzinfo=UTC)
    within = ids.claim_id(RUN, start + timedelta(minutes=59, seconds=59), every)
    assert ids.claim_id(RUN, start, every) == within == f"{RUN}-{int(start.timestamp()) // 3600}"
    assert ids.claim_id(RUN, start + every, every) != within


@given(key=keys)
def test_a_disk_name_is_legal_and_carries_the_try(key):
    name = ids.disk_name(ids.gce_instance_id(key), NONCE)
    assert RFC_1035.fullmatch(name)
    assert len(name) <= 63
    assert name.endswith("-00112233")


@given(
    run_id=run_ids,
    family=tokens,
    attempt=attempts,
    index=st.integers(0, 99_999),
    stage=st.sampled_from(["started", "terminal"]),
)
def test_a_marker_path_is_read_back_whole(run_id, family, attempt, index, stage):
    key = ids.job_key(run_id, family, attempt)
    name = ids.marker_object(key, NONCE, index, stage)
    assert name.startswith(ids.marker_prefix(key, NONCE))
    assert ids.parse_marker_object(name) == ids.MarkerName(job_key=key, nonce=NONCE, index=index, stage=stage)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f"runs/status/sf-{RUN}-ml-a1/{NONCE}/0.running.json", id="another stage"),
        pytest.param(
            f"runs/status/sf-{RUN}-ml-a1/{NONCE}/00.terminal.json", id="another spelling of index 0"
        ),
        pytest.param(f"runs/status/sf-{RUN}-ml-a1/{NONCE.upper()}/0.terminal.json", id="nonce in capitals"),
        pytest.param(f"runs/status/sf-{RUN}-ml-a1/{NONCE[:15]}/0.terminal.json", id="short nonce"),
        pytest.param(f"runs/status/some-job/{NONCE}/0.terminal.json", id="no job key"),
        pytest.param(f"runs/status/sf-{RUN}-ml-a1/x/{NONCE}/0.terminal.json", id="a folder more"),
        pytest.param(f"x/runs/status/sf-{RUN}-ml-a1/{NONCE}/0.terminal.json", id="another root"),
        pytest.param(f"runs/gce-status/sf-{RUN}-ml-a1.json", id="the older readers' object"),
        pytest.param("", id="nothing"),
    ],
)
def test_anything_else_is_no_marker(name):
    assert ids.parse_marker_object(name) is None


@pytest.mark.parametrize("name", [pytest.param("runs/gce-status/sf-x-a1.json", id="acceptance-C9")])
def test_older_readers_find_a_vms_end_where_it_always_was(name):
    assert ids.gce_status_object("sf-x-a1") == name


@given(st.text(max_size=100))
def test_a_label_value_is_legal_on_compute_engine_and_kubernetes(text):
    assert re.fullmatch(r"([a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?)?", ids.label_value(text))
