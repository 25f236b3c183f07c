"""The Quota port on Google: Compute Engine tells limit and usage of most meters, Service Usage the limit of the others.

A quota that cannot be read is not known and blocks nobody, so nothing here raises. What was read is kept for some seconds:
a burst of jobs asks once. What could not be read is not asked for again for a minute, so that no burst waits for time-outs.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from runtender.observed import Reading
from runtender.ports import Api, ApiAnswer, ApiRequest, Clock, Meter

SERVICE_USAGE_URL = "https://serviceusage.googleapis.com"

METHODS = ("compute.projects.get", "compute.regions.get", "serviceusage.services.consumerQuotaMetrics.get")
"""Every API method that is called here: what the plane needs permission for."""

_LOG = logging.getLogger("runtender.quota")

_FRESH = timedelta(seconds=10)
_UNREAD_FOR = timedelta(minutes=1)
_UNLIMITED = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    """An answer's body, None for a failure, and until when it is not asked for again."""

    body: Mapping[str, Any] | None
    until: datetime


class GoogleQuota:
    """The quota of one project. Safe for many threads: at worst something is read twice."""

    def __init__(self, project: str, compute: Api, service_usage: Api | None, *, clock: Clock) -> None:
        """Ask `compute`, and `service_usage` where there is one, for what Compute Engine does not tell."""
        self._project = project
        self._compute = compute
        self._service_usage = service_usage
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    def read(self, region: str, meters: Collection[Meter]) -> Mapping[str, Reading]:
        readings = self._rows("compute.regions.get", f"/projects/{self._project}/regions/{region}")
        if any(meter.everywhere for meter in meters):
            readings = {**readings, **self._rows("compute.projects.get", f"/projects/{self._project}")}
        if readings:
            missing = [meter for meter in meters if meter.name not in readings and not meter.everywhere]
            readings = {**readings, **{meter.name: self._limit(meter, region) for meter in missing}}
        return {meter.name: readings[meter.name] for meter in meters if meter.name in readings}

    def _rows(self, method: str, path: str) -> dict[str, Reading]:
        body = self._fetch(self._compute, ApiRequest(method_id=method, verb="GET", path=path))
        # With the warning, the numbers are old or missing.
        if body is None or body.get("quotaStatusWarning"):
            return {}
        rows = [row for row in body.get("quotas") or () if isinstance(row, Mapping)]
        return {
            str(row.get("metric")): Reading(limit=_whole(row.get("limit")), usage=_whole(row.get("usage")))
            for row in rows
        }

    def _limit(self, meter: Meter, region: str) -> Reading:
        """Ask Service Usage: one call per metric, for all regions and families."""
        if self._service_usage is None:
            return Reading()
        service = meter.metric.partition("/")[0]
        metric = quote(meter.metric, safe="")
        request = ApiRequest(
            method_id="serviceusage.services.consumerQuotaMetrics.get",
            verb="GET",
            path=f"/v1beta1/projects/{self._project}/services/{service}/consumerQuotaMetrics/{metric}",
        )
        body = self._fetch(self._service_usage, request)
        return Reading(limit=None if body is None else effective_limit(body, region, meter.dimension))

    def _fetch(self, api: Api, request: ApiRequest) -> Mapping[str, Any] | None:
        kept = self._kept.get(request.path)
        now = self._clock.now()
        if kept is not None and now < kept.until:
            return kept.body
        answer = api.send(request)
        body = _body(answer)
        if body is None:
            facts = {"method": request.method_id, "path": request.path, "status": answer.status}
            _LOG.warning("quota not read", extra=facts)
        self._kept[request.path] = _Kept(body=body, until=now + (_FRESH if body is not None else _UNREAD_FOR))
        return body


def effective_limit(
    body: Mapping[str, Any], region: str, dimension: tuple[str, str] | None = None
) -> int | None:
    """Return the limit that a ConsumerQuotaMetric sets in a region (and a family); None where it tells of none.

    Of each limit's buckets the most specific one that fits counts: a place says more than a family. Of several limits the
    smallest counts.
    """
    wanted = {"region": region, **dict([dimension] if dimension else [])}
    limits = [_items(limit.get("quotaBuckets")) for limit in _items(body.get("consumerQuotaLimits"))]
    found = [_whole(bucket.get("effectiveLimit")) for buckets in limits if (bucket := _best(buckets, wanted))]
    return min((limit for limit in found if limit is not None and limit > _UNLIMITED), default=None)


def _best(buckets: Iterable[Mapping[str, Any]], wanted: Mapping[str, str]) -> Mapping[str, Any] | None:
    fitting = [bucket for bucket in buckets if _dimensions(bucket).items() <= wanted.items()]
    return max(fitting, key=_specificity, default=None)


def _specificity(bucket: Mapping[str, Any]) -> tuple[bool, int]:
    dimensions = _dimensions(bucket)
    return ("region" in dimensions, len(dimensions))


def _dimensions(bucket: Mapping[str, Any]) -> Mapping[str, str]:
    dimensions = bucket.get("dimensions")
    return dimensions if isinstance(dimensions, Mapping) else {}


def _body(answer: ApiAnswer) -> Mapping[str, Any] | None:
    return answer.body if answer.ok and answer.body else None


def _items(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _whole(value: object) -> int | None:
    """Read a number that one API writes as a float and the other as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return None
