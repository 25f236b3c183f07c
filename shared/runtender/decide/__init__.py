"""The state machine of a job, pure: see `machine.decide`."""

from runtender.decide.decision import (
    Context,
    Decision,
    Effect,
    KeepLogs,
    Look,
    LookKind,
    SendCreate,
    SendDelete,
    SendDeleteRemains,
    Tombstone,
    Turn,
)
from runtender.decide.header import roll_up, status_word, with_job
from runtender.decide.indexed import Stir, stirred_by
from runtender.decide.looks import wanted
from runtender.decide.machine import decide, is_under_way, record_create, request_cancel
from runtender.decide.teardown import record_delete

__all__ = [
    "Context", "Decision", "Effect", "KeepLogs", "Look", "LookKind", "SendCreate", "SendDelete", "SendDeleteRemains", "Stir",
    "Tombstone", "Turn", "decide", "is_under_way", "record_create", "record_delete", "request_cancel", "roll_up",
    "status_word", "stirred_by", "wanted", "with_job",
]  # fmt: skip
