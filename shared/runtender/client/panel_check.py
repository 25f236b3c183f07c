"""A look at the panel before anything is published: a run on a panel that cannot be forecast costs a machine to find out.

The worker checks again with the same words (`worker.panel`), because a message may come another way.
"""

from __future__ import annotations

from runtender.client.object_uri import parse_uri
from runtender.errors import Fault, Rejected
from runtender.forecast.blocks import PanelData
from runtender.ports import Objects
from runtender.worker.panel import (
    Columns,
    PanelError,
    check_horizon,
    empty_panel,
    missing_panel,
    read_panel,
)

# The check reads the whole panel and parses every row: seconds up to here, too long for a prompt beyond.
MAX_CHECKED_BYTES = 32 * 1024 * 1024


def check_panel(data: PanelData, objects: Objects) -> str:
    """Check the panel as far as this machine can, and return in a sentence how far that was.

    Raises `Rejected` with the config field for a panel that cannot be forecast. A panel that is not a `gs://` URI is a
    table that only the user's own worker can read.
    """
    uri = data.source_table
    if not uri.startswith("gs://"):
        return f"panel {uri} is a table: the worker checks it"
    try:
        return _check_object(data, objects)
    except PanelError as error:
        fault = Fault(field=error.where, problem=error.problem, remedy=error.remedy)
        raise Rejected([fault]) from error


def _check_object(data: PanelData, objects: Objects) -> str:
    uri = parse_uri(data.source_table, "data.source_table")
    stored = objects.stat(uri.bucket, uri.name)
    if stored is None:
        raise missing_panel(data.source_table)
    if stored.size == 0:
        raise empty_panel(data.source_table)
    if stored.size > MAX_CHECKED_BYTES:
        return f"panel {uri} has {stored.size >> 20} MiB: columns and rows are left to the worker"
    content = objects.read(uri.bucket, uri.name, limit=stored.size)
    if content is None:
        raise missing_panel(data.source_table)
    columns = Columns(ts_id=data.ts_id_col, date=data.date_col, target=data.target_col)
    try:
        panel = read_panel(content, data.source_table, columns)
    except ModuleNotFoundError:
        return f"panel {uri} is Parquet: columns and rows are left to the worker (install runtender[worker] to check here)"
    check_horizon(panel, data.horizon)
    return f"panel {uri}: {len(panel.series)} series, {panel.rows} rows"
