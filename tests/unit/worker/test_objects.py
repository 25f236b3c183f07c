"""Storage as a worker uses it, against the object server."""

from __future__ import annotations

import pytest
from google.api_core.exceptions import Forbidden

from runtender.local.http import Fault, google_error
from runtender.worker.objects import ObjectMissing, Objects


def test_an_object_reads_back_with_its_type_and_metadata(bucket):
    Objects("p").write_once("gs://code/a/b.json", b"{}", "application/json", {"cells": "3"})

    assert Objects("p").read("gs://code/a/b.json") == b"{}"
    stored = bucket.get_blob("a/b.json")
    assert (stored.content_type, stored.metadata) == ("application/json", {"cells": "3"})


@pytest.mark.parametrize("uri", ["gs://code/none", "gs://no-bucket/none"])
@pytest.mark.usefixtures("bucket")
def test_a_missing_object_or_bucket_is_told_apart_from_other_errors(uri):
    with pytest.raises(ObjectMissing, match=f"{uri} does not exist"):
        Objects("p").read(uri)


@pytest.mark.parametrize("uri", ["code/a", "gs://code", "gs:///a", "gs://code/", "https://code/a"])
@pytest.mark.usefixtures("bucket")
def test_what_is_no_uri_is_refused(uri):
    with pytest.raises(ValueError, match="is not gs://BUCKET/NAME"):
        Objects("p").read(uri)


@pytest.mark.usefixtures("bucket")
def test_the_first_writer_of_an_object_wins_and_the_second_is_content():
    objects = Objects("p")
    objects.write_once("gs://code/cells", b"first", "text/plain")
    objects.write_once("gs://code/cells", b"second", "text/plain")

    assert objects.read("gs://code/cells") == b"first"


def test_an_upload_whose_answer_was_lost_is_stored_once(bucket, upload_faults):
    upload_faults.append(Fault(answer=google_error(503, "backendError", "lost"), applied=True))

    Objects("p").write_once("gs://code/cells", b"cells", "text/plain")

    assert bucket.blob("cells").download_as_bytes() == b"cells"


@pytest.mark.usefixtures("bucket")
def test_a_refusal_to_replace_means_that_it_is_stored(upload_faults):
    upload_faults.append(
        Fault(answer=google_error(403, "forbidden", "w does not have storage.objects.delete access"))
    )

    Objects("p").write_once("gs://code/cells", b"cells", "text/plain")

    assert upload_faults == []


@pytest.mark.usefixtures("bucket")
def test_a_refusal_to_create_is_an_error(upload_faults):
    upload_faults.append(
        Fault(answer=google_error(403, "forbidden", "w does not have storage.objects.create access"))
    )

    with pytest.raises(Forbidden, match=r"storage\.objects\.create"):
        Objects("p").write_once("gs://code/cells", b"cells", "text/plain")
