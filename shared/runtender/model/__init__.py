"""The nouns: what a run, a job, a resource row and a marker are.

Everything here is a frozen value without behaviour beyond derived properties; the rules live in `decide`, the shapes on
the wire in `wire`. This module imports nothing of ours. Times are aware datetimes in UTC, durations timedeltas.
"""

from runtender.model.job import (
    Block,
    Cells,
    Cleanup,
    Deadlines,
    HistoryRow,
    Job,
    LedgerEntry,
    PhaseTimes,
    Resource,
    Summary,
    Walk,
)
from runtender.model.plan import (
    JobPlan,
    Limits,
    LiveLimit,
    Machine,
    Placement,
    SubmitRequest,
    WalkPolicy,
)
from runtender.model.run import (
    FamilyEntry,
    Marker,
    Run,
    Timing,
)
from runtender.model.words import (
    Admission,
    CleanupState,
    Json,
    MarkerStatus,
    Outcome,
    Phase,
    Reason,
    ResourceKind,
    ResourceState,
    Scope,
    SubmitAction,
    SubmitKind,
    Verdict,
    Writer,
)

__all__ = [
    "Admission",
    "Block",
    "Cells",
    "Cleanup",
    "CleanupState",
    "Deadlines",
    "FamilyEntry",
    "HistoryRow",
    "Job",
    "JobPlan",
    "Json",
    "LedgerEntry",
    "Limits",
    "LiveLimit",
    "Machine",
    "Marker",
    "MarkerStatus",
    "Outcome",
    "Phase",
    "PhaseTimes",
    "Placement",
    "Reason",
    "Resource",
    "ResourceKind",
    "ResourceState",
    "Run",
    "Scope",
    "SubmitAction",
    "SubmitKind",
    "SubmitRequest",
    "Summary",
    "Timing",
    "Verdict",
    "Walk",
    "WalkPolicy",
    "Writer",
]
