"""Partial answers select what they name."""

from __future__ import annotations

import pytest

from runtender.local.compute.errors import ApiError
from runtender.local.compute.fields import parse_fields, select

DOCUMENT = {
    "kind": "list",
    "nextPageToken": "t",
    "items": {
        "zones/a": {"instances": [{"id": "1", "labels": {"k": "v"}, "metadata": {}}, {"id": "2"}]},
        "zones/b": {"warning": {"code": "NONE", "message": "m"}},
    },
}
MASKS = {
    "kind": {"kind": "list"},
    "kind,nope": {"kind": "list"},
    "items/*/warning(code)": {"items": {"zones/a": {}, "zones/b": {"warning": {"code": "NONE"}}}},
    "nextPageToken, items/*/instances(id,labels)": {
        "nextPageToken": "t",
        "items": {"zones/a": {"instances": [{"id": "1", "labels": {"k": "v"}}, {"id": "2"}]}, "zones/b": {}},
    },
    "items(*(instances/id))": {
        "items": {"zones/a": {"instances": [{"id": "1"}, {"id": "2"}]}, "zones/b": {}}
    },
}


@pytest.mark.parametrize(("text", "found"), MASKS.items(), ids=MASKS)
def test_a_mask_selects_what_it_names(text, found):
    assert select(parse_fields(text), DOCUMENT) == found


@pytest.mark.parametrize("text", [",", "a,", "a/", "a(", "a()", "a)", "a(b", "(a)", "a b", "a/(b)", "a;b"])
def test_a_mask_that_cannot_be_read_is_refused(text):
    with pytest.raises(ApiError, match="Invalid field selection"):
        parse_fields(text)


def test_an_answer_holds_the_fields_that_were_asked_for(project):
    project.insert()
    assert project.call("GET", "zones/us-central1-a/instances/sf-vm", fields="name,status")[1] == {
        "name": "sf-vm",
        "status": "PROVISIONING",
    }
    assert project.call("GET", "zones/us-central1-a/instances", fields="(")[0] == 400
    assert project.call("GET", "zones/us-central1-a/instances/nobody", fields="name")[0] == 404
