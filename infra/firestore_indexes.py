"""Writes `modules/control-plane/firestore.json`: which fields the plane's queries need an index on, and what expires.

Firestore indexes every field of every document unless it is told otherwise, and each index is paid for at every write. So
Terraform switches all of them off but those in this file, which is read from the source: a query that is added without its
index would fail in production, and only there (the emulator answers it). `python infra/firestore_indexes.py`, or
`make indexes`; a test fails while the file is older than the code.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "shared/runtender"
OUTPUT = ROOT / "infra/modules/control-plane/firestore.json"

# The local cloud has stores of its own.
_NOT_DEPLOYED = "local"
# Where documents are written; elsewhere a path with one word before the slash is something else.
_WRITERS = ("engine", "forecast", "wire")
_NOT_COLLECTIONS = frozenset({"projects"})
_EXPIRY = "expires_at"
# Functions that write an expiry below a path which is put together elsewhere.
_WRITTEN_ELSEWHERE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("engine/budget.py", "_has_room"): ("budget",),
    ("wire/documents.py", "_spill"): ("history", "ledger"),
}
# `Store.due` in `gcp/firestore.py`; `find` names its fields where it is called.
_DUE = ("jobs", ("wake_at",))


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """One `Store.find` in the source: the fields that must be equal, and the one that orders, with its direction."""

    collection: str
    equal: tuple[str, ...] = ()
    order_by: str | None = None
    descending: bool = False

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """The fields in the order that an index needs them, each with its direction."""
        ordered = () if self.order_by is None else ((self.order_by, self._direction),)
        return (*((field, "ASCENDING") for field in sorted(self.equal)), *ordered)

    @property
    def _direction(self) -> str:
        return "DESCENDING" if self.descending else "ASCENDING"


class UnreadableQuery(Exception):
    """A query, or a write of an expiry, that cannot be read from the source: it must name its fields in place."""


def sources(package: Path = PACKAGE) -> dict[str, ast.Module]:
    """Return the modules that talk to the deployed store, by their path in the package."""
    paths = sorted(path.relative_to(package) for path in package.rglob("*.py"))
    return {
        path.as_posix(): ast.parse((package / path).read_text())
        for path in paths
        if path.parts[0] != _NOT_DEPLOYED
    }


def queries(modules: Mapping[str, ast.Module]) -> set[Query]:
    """Return every query in the source. Raises `UnreadableQuery`."""
    found = {Query(collection=_DUE[0], order_by=_DUE[1][0])}
    for name, module in modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and _is_find(node):
                found.add(_query(name, node))
    return found


def _is_find(node: ast.Call) -> bool:
    """True for `store.find(...)`, `plane.store.find(...)` and the like: other things are found, too."""
    match node.func:
        case ast.Attribute(attr="find", value=ast.Name(id="store") | ast.Attribute(attr="store")):
            return True
        case _:
            return False


def _query(module: str, call: ast.Call) -> Query:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    order_by = named.get("order_by")
    try:
        return Query(
            collection=_last_word(call.args[0]),
            equal=_keys(named.get("where")),
            order_by=None if order_by is None else _text(order_by),
            descending=bool(ast.literal_eval(named.get("descending", "False"))),
        )
    except ValueError as error:
        raise UnreadableQuery(f"{module}:{call.lineno}: {ast.unparse(call)}") from error


def _keys(where: ast.expr | None) -> tuple[str, ...]:
    match where:
        case None:
            return ()
        case ast.Dict(keys=keys):
            return tuple(_text(key) for key in keys)
        case _:
            raise ValueError("no literal mapping")


def _text(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case _:
            raise ValueError("no literal text")


def _last_word(node: ast.expr) -> str:
    """Return the collection of a path: its last segment, which is literal also where the path before it is not."""
    last = node.values[-1] if isinstance(node, ast.JoinedStr) else node
    return _text(last).rpartition("/")[2]


def collections(modules: Mapping[str, ast.Module]) -> set[str]:
    """Return every collection that the source writes to."""
    written = {
        collection
        for name, module in modules.items()
        if name.split("/")[0] in _WRITERS
        for collection in _paths(module)
    }
    return written | set(expiring(modules))


def _paths(tree: ast.AST) -> Iterator[str]:
    """Yield `jobs` for an f-string like `jobs/{key}`."""
    for node in ast.walk(tree):
        first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            word, slash, rest = first.value.partition("/")
            if slash and not rest and word.isidentifier() and word not in _NOT_COLLECTIONS:
                yield word


def expiring(modules: Mapping[str, ast.Module]) -> set[str]:
    """Return the collections whose documents carry their own end. Raises `UnreadableQuery`."""
    found: set[str] = set()
    for name, module in modules.items():
        if name.split("/")[0] not in _WRITERS:
            continue
        for function in ast.walk(module):
            if isinstance(function, ast.FunctionDef) and _writes_expiry(function):
                paths = set(_paths(function)) or set(_WRITTEN_ELSEWHERE.get((name, function.name), ()))
                if not paths:
                    raise UnreadableQuery(
                        f"{name}: {function.name} writes {_EXPIRY} to documents unknown here"
                    )
                found |= paths
    return found


def _writes_expiry(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(key, ast.Constant) and key.value == _EXPIRY
        for node in ast.walk(function)
        if isinstance(node, ast.Dict)
        for key in node.keys
    )


def document(modules: Mapping[str, ast.Module]) -> dict[str, object]:
    """Return what Terraform reads. A query by one field needs that field's own index, one by more a composite index."""
    single: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    composite = []
    asked = queries(modules)
    for query in sorted(asked, key=repr):
        if len(query.fields) > 1:
            fields = [{"field": field, "order": order} for field, order in query.fields]
            composite.append({"collection": query.collection, "fields": fields})
            continue
        for field, order in query.fields:
            single[query.collection][field].add(order)
    return {
        "collections": sorted(collections(modules) | {query.collection for query in asked}),
        "composite": composite,
        "expiring": sorted(expiring(modules)),
        "indexes": {name: _sorted(fields) for name, fields in sorted(single.items())},
    }


def _sorted(fields: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    return {field: sorted(orders) for field, orders in sorted(fields.items())}


def main() -> None:
    """Write the file."""
    OUTPUT.write_text(json.dumps(document(sources()), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
