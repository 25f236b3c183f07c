"""A look at the panel before anything is published: a run on a panel that cannot be forecast costs a machine to find out.

The worker checks again with the same words (`worker.panel`, `worker.forecastable`), because a message may come another
way. What the reference worker cannot do (read a table, know a frequency, forecast over gaps) refuses a run whose entry
point is the reference worker's; of any other worker nobody knows here what it can do, so its user is only warned.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtender.client.object_uri import parse_uri
from runtender.errors import Fault, Rejected
from runtender.forecast.blocks import PanelData
from runtender.ports import Objects
from runtender.worker.forecastable import check_series
from runtender.worker.panel import (
    Columns,
    Panel,
    PanelError,
    check_horizon,
    empty_panel,
    missing_panel,
    read_panel,
    table_panel,
)
from runtender.worker.periods import frequency, unknown_frequency

REFERENCE_ENTRYPOINT = "forecast_worker.main:main"
"""The reference worker's entry point. A copy that can do more goes by another package name."""

# The check reads the whole panel and parses every row: seconds up to here, too long for a prompt beyond.
MAX_CHECKED_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class PanelView:
    """How far the panel could be looked at, in a sentence, and what the run will suffer from."""

    seen: str = ""
    warnings: tuple[str, ...] = ()


def check_panel(data: PanelData, objects: Objects, entrypoint: str) -> PanelView:
    """Check the panel as far as this machine can, for the worker that begins at `entrypoint`.

    Raises `Rejected` with the config fields for a panel that cannot be forecast. A panel that is not a `gs://` URI is a
    table that only the user's own worker can read.
    """
    is_reference = entrypoint == REFERENCE_ENTRYPOINT
    errors: list[PanelError] = []
    doubts: list[PanelError | str] = []
    seen = ""
    if frequency(data.freq) is None:
        (errors if is_reference else doubts).append(unknown_frequency(data.freq))
    try:
        if data.source_table.startswith("gs://"):
            seen, doubt = _check_object(data, objects, is_reference=is_reference)
            doubts.append(doubt)
        elif is_reference:
            errors.append(table_panel(data.source_table))
        else:
            seen = f"panel {data.source_table} is a table: the worker checks it"
    except PanelError as error:
        errors.append(error)
    if errors:
        raise Rejected(Fault(field=each.where, problem=each.problem, remedy=each.remedy) for each in errors)
    return PanelView(seen=seen, warnings=tuple(str(doubt) for doubt in doubts if doubt))


def _check_object(data: PanelData, objects: Objects, *, is_reference: bool) -> tuple[str, str]:
    """Return what was seen of the panel, and what is doubtful about it; raises PanelError."""
    uri = parse_uri(data.source_table, "data.source_table")
    stored = objects.stat(uri.bucket, uri.name)
    if stored is None:
        raise missing_panel(data.source_table)
    if stored.size == 0:
        raise empty_panel(data.source_table)
    if stored.size > MAX_CHECKED_BYTES:
        return f"panel {uri} has {stored.size >> 20} MiB: columns and rows are left to the worker", ""
    content = objects.read(uri.bucket, uri.name, limit=stored.size)
    if content is None:
        raise missing_panel(data.source_table)
    columns = Columns(ts_id=data.ts_id_col, date=data.date_col, target=data.target_col)
    try:
        panel = read_panel(content, data.source_table, columns)
    except ModuleNotFoundError:
        remedy = "install runtender[worker] to check here"
        return f"panel {uri} is Parquet: columns and rows are left to the worker ({remedy})", ""
    doubt = _doubt(panel.first(data.series_limit), data, is_reference=is_reference)
    return f"panel {uri}: {len(panel.series)} series, {panel.rows} rows", doubt


def _doubt(panel: Panel, data: PanelData, *, is_reference: bool) -> str:
    """Say which series the reference worker cannot forecast; raises PanelError where the run would have no forecast."""
    check_horizon(panel, data.horizon)
    known = frequency(data.freq)
    if known is None:
        return ""
    try:
        return check_series(panel, data.horizon, known)
    except PanelError as error:
        if is_reference:
            raise
        return str(error)
