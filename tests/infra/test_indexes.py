"""Firestore's indexes and expiries: Terraform has those that the code needs, and no others."""

from __future__ import annotations

import ast
import json
import logging

import pytest

from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.world import ENVIRONMENT, World
from runtender.local.store import MemoryStore
from runtender.settings import Settings


class ListeningStore(MemoryStore):
    """The store of a simulated world, which remembers what it was asked and what was written to it."""

    def __init__(self):
        super().__init__()
        self.asked = set()
        self.written = {}

    def find(self, collection, *, where=None, order_by=None, descending=False, limit=100):
        self.asked.add((collection.rpartition("/")[2], frozenset(where or {}), order_by, descending))
        return super().find(collection, where=where, order_by=order_by, descending=descending, limit=limit)

    def commit(self, writes):
        for write in writes:
            collection = write.path.split("/")[-2]
            fields = getattr(write, "fields", None) or getattr(write, "data", {})
            self.written.setdefault(collection, set()).update(fields)
        return super().commit(writes)


@pytest.fixture(scope="module")
def store():
    """What a world asked its store in which runs are short of capacity, limited, and end."""
    logger = logging.getLogger("runtender")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    listening = ListeningStore()
    settings = Settings.from_env({**ENVIRONMENT, "SF_LIMITS": '[{"jobs": 1}]'})
    world = World(store=listening, settings=settings, behaviour=Behaviour(boot_s=1, work_s=5))
    try:
        world.submit()
        world.submit(force=True, request_id="refused-while-the-first-lives")
        world.settle()
    finally:
        world.close()
        logger.setLevel(before)
    return listening


def test_the_file_is_as_new_as_the_code(indexes):
    written = json.loads(indexes.OUTPUT.read_text())
    assert written == indexes.document(indexes.sources()), "run `make indexes`"


def test_a_plane_at_work_asks_only_what_has_an_index(indexes, store):
    known = json.loads(indexes.OUTPUT.read_text())
    assert store.asked, "the world asked nothing"
    for collection, equal, order_by, descending in store.asked:
        query = indexes.Query(
            collection=collection, equal=tuple(equal), order_by=order_by, descending=descending
        )
        if len(query.fields) > 1:
            fields = [{"field": field, "order": order} for field, order in query.fields]
            assert {"collection": collection, "fields": fields} in known["composite"]
            continue
        for field, order in query.fields:
            assert order in known["indexes"][collection][field]


def test_a_plane_at_work_writes_only_to_known_collections(indexes, store):
    known = json.loads(indexes.OUTPUT.read_text())
    assert set(store.written) <= set(known["collections"])
    for collection, fields in store.written.items():
        assert ("expires_at" in fields) == (collection in known["expiring"]), collection


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param('store.find("jobs", where={"a": 1})', {"jobs": {"a": ["ASCENDING"]}}, id="equal"),
        pytest.param(
            'plane.store.find("runs", order_by="b", descending=True)',
            {"runs": {"b": ["DESCENDING"]}},
            id="order",
        ),
        pytest.param(
            'self._plane.store.find(f"jobs/{key}/history", where={"a.b": 1})',
            {"history": {"a.b": ["ASCENDING"]}},
            id="a collection below a document",
        ),
        pytest.param('text.find("jobs")', {}, id="another kind of find"),
    ],
)
def test_a_query_by_one_field_needs_that_index(indexes, code, expected):
    document = indexes.document({"engine/new.py": ast.parse(code)})
    due = {"wake_at": ["ASCENDING"]}
    assert document["indexes"] == {**expected, "jobs": {**expected.get("jobs", {}), **due}}
    assert document["composite"] == []


def test_a_query_by_two_fields_needs_a_composite_index(indexes):
    code = 'store.find("jobs", where={"b": 1, "a": 2}, order_by="c", descending=True)'
    document = indexes.document({"engine/new.py": ast.parse(code)})
    assert document["composite"] == [
        {
            "collection": "jobs",
            "fields": [
                {"field": "a", "order": "ASCENDING"},
                {"field": "b", "order": "ASCENDING"},
                {"field": "c", "order": "DESCENDING"},
            ],
        }
    ]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("store.find(name)", id="a collection that only runs tell"),
        pytest.param('store.find("jobs", where=wanted)', id="fields that only runs tell"),
        pytest.param('store.find("jobs", order_by=field)', id="an order that only runs tell"),
        pytest.param('def write(path):\n    return {"expires_at": 1}', id="an expiry of documents unknown"),
    ],
)
def test_what_cannot_be_read_is_refused(indexes, code):
    with pytest.raises(indexes.UnreadableQuery, match=r"engine/new\.py"):
        indexes.document({"engine/new.py": ast.parse(code)})


def test_terraform_makes_what_the_file_says(indexes, values):
    known = json.loads(indexes.OUTPUT.read_text())
    fields = [value for address, value in values.items() if address.startswith("google_firestore_field.")]
    made = {
        (field["collection"], field["field"]): [
            index["order"] for index in field["index_config"][0]["indexes"]
        ]
        for field in fields
    }
    expected = {
        **{(collection, "*"): [] for collection in known["collections"]},
        **{(collection, "expires_at"): [] for collection in known["expiring"]},
        **{
            (collection, field): orders
            for collection, fields in known["indexes"].items()
            for field, orders in fields.items()
        },
    }
    assert made == expected
    expiring = {field["collection"] for field in fields if field["ttl_config"]}
    assert expiring == set(known["expiring"])
