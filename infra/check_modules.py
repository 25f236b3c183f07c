"""Reads the Terraform modules as text, and says what is wrong with them where no provider can be had.

`terraform validate` needs Terraform and the provider's plug-in. This needs neither: it holds every reference against what is
declared, every module call against the module's variables, and every argument against a list of the provider's
(`tests/infra/provider_schema.json`). It knows no types and evaluates nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hcl2.api import loads as parse_hcl

ROOT = Path(__file__).resolve().parents[1]
INFRA = ROOT / "infra"
SCHEMA = ROOT / "tests/infra/provider_schema.json"

Body = Mapping[str, Any]
Schema = Mapping[str, Any]

_META = frozenset({"count", "depends_on", "for_each", "lifecycle", "provider"})
_CALL_META = _META | {"providers", "source", "version"}
_EXPRESSION = re.compile(r"\$\{")
_REFERENCE = re.compile(
    r"(?<![\w.\"'-])(?P<data>data\.)?(?P<kind>var|local|module|google_\w+)\.(?P<name>[A-Za-z_][\w-]*)"
    r"(?:\[[^\]]*\])?(?:\.(?P<attribute>[A-Za-z_]\w*))?"
)
_FORBIDDEN = {
    "a primitive role": re.compile(r"\broles/(owner|editor|viewer)\b"),
    "access for everybody": re.compile(r"\ball(Authenticated)?Users\b"),
    "a key of a service account": re.compile(r"\bgoogle_service_account_key\b"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """A folder of Terraform files, taken apart. Resources and data are found by `type.name`."""

    path: Path
    variables: Mapping[str, Body]
    locals: Mapping[str, Any]
    outputs: Mapping[str, Body]
    calls: Mapping[str, Body]
    resources: Mapping[str, Body]
    data: Mapping[str, Body]
    settings: tuple[Body, ...]

    @property
    def everything(self) -> tuple[Any, ...]:
        """All that may hold references."""
        kinds = (self.variables, self.locals, self.outputs, self.calls, self.resources, self.data)
        return tuple(body for kind in kinds for body in kind.values())


def folders(infra: Path = INFRA) -> list[Path]:
    """Return every folder with Terraform files."""
    return sorted({path.parent for path in infra.rglob("*.tf") if ".terraform" not in path.parts})


def load(path: Path) -> Module:
    """Read a folder's files."""
    files = [_parsed(source.read_text(encoding="utf-8")) for source in sorted(path.glob("*.tf"))]
    return Module(
        path=path,
        variables=_named(files, "variable"),
        locals=_locals(files),
        outputs=_named(files, "output"),
        calls=_named(files, "module"),
        resources=_typed(files, "resource"),
        data=_typed(files, "data"),
        settings=tuple(block for file in files for block in file.get("terraform", ())),
    )


@cache
def _parsed(text: str) -> Body:
    """Parse a file's text, once: that is what takes the time, and most folders call the same modules."""
    parsed: Body = parse_hcl(text)
    return parsed


def _locals(files: Sequence[Body]) -> dict[str, Any]:
    return {
        name: value for file in files for block in file.get("locals", ()) for name, value in block.items()
    }


def _named(files: Sequence[Body], kind: str) -> dict[str, Body]:
    return {name: body for file in files for block in file.get(kind, ()) for name, body in block.items()}


def _typed(files: Sequence[Body], kind: str) -> dict[str, Body]:
    return {f"{of}.{name}": body for of, bodies in _pairs(files, kind) for name, body in bodies.items()}


def _pairs(files: Sequence[Body], kind: str) -> Iterator[tuple[str, Body]]:
    for file in files:
        for block in file.get(kind, ()):
            yield from block.items()


def faults(module: Module, schema: Schema) -> list[str]:
    """Return everything that is wrong with a module."""
    found = [
        *_undeclared(module, schema),
        *_unused(module),
        *_undescribed(module),
        *_calls(module),
        *_arguments(module, schema),
        *_forbidden(module),
        *_versions(module),
    ]
    where = module.path.relative_to(INFRA) if module.path.is_relative_to(INFRA) else module.path.name
    return [f"{where}: {fault}" for fault in found]


def references(tree: Any) -> Iterator[re.Match[str]]:
    """Yield what the expressions in a parsed tree refer to."""
    match tree:
        case str():
            if _EXPRESSION.search(tree):
                yield from _REFERENCE.finditer(tree)
        case Mapping():
            for key, value in tree.items():
                yield from references(key)
                yield from references(value)
        case list() | tuple():
            for value in tree:
                yield from references(value)


def _undeclared(module: Module, schema: Schema) -> Iterator[str]:
    for found in references(module.everything):
        kind, name, attribute = found["kind"], found["name"], found["attribute"]
        known = {"var": module.variables, "local": module.locals, "module": module.calls}.get(kind)
        if known is not None:
            if name not in known:
                yield f"{kind}.{name} is not declared"
            elif kind == "module" and attribute and attribute not in _callee(module, name).outputs:
                yield f"module.{name} has no output {attribute}"
            continue
        address = f"{kind}.{name}"
        if address not in (module.data if found["data"] else module.resources):
            yield f"{found['data'] or ''}{address} is not declared"
        elif attribute and not _has_attribute(schema, found):
            yield f"{address} exports no {attribute}"


def _has_attribute(schema: Schema, found: re.Match[str]) -> bool:
    shape = schema["data" if found["data"] else "resources"].get(found["kind"], {"attributes": {}})
    return found["attribute"] in shape["attributes"] or found["attribute"] in shape.get("blocks", {})


def _unused(module: Module) -> Iterator[str]:
    used = {f"{found['kind']}.{found['name']}" for found in references(module.everything)}
    # A validation looks at its own variable; that is no use of it.
    for name in module.variables:
        others = [body for other, body in module.variables.items() if other != name]
        rest = (*others, module.locals, module.outputs, module.calls, module.resources, module.data)
        if not any((found["kind"], found["name"]) == ("var", name) for found in references(rest)):
            yield f"variable {name} is not used"
    yield from (f"local {name} is not used" for name in module.locals if f"local.{name}" not in used)
    yield from (f"data {name} is not used" for name in module.data if name not in used)


def _undescribed(module: Module) -> Iterator[str]:
    for kind, bodies, needed in (
        ("variable", module.variables, ("description", "type")),
        ("output", module.outputs, ("description", "value")),
    ):
        for name, body in bodies.items():
            yield from (f"{kind} {name} has no {key}" for key in needed if not body.get(key))
        if list(bodies) != sorted(bodies):
            yield f"{kind}s do not stand from A to Z"


def _callee(module: Module, call: str) -> Module:
    return load((module.path / module.calls[call]["source"]).resolve())


def _calls(module: Module) -> Iterator[str]:
    for name, body in module.calls.items():
        if not (module.path / body["source"]).is_dir():
            yield f"module {name}: there is no {body['source']}"
            continue
        variables = _callee(module, name).variables
        given = set(body) - _CALL_META
        yield from (f"module {name} takes no {each}" for each in sorted(given - set(variables)))
        required = {each for each, variable in variables.items() if "default" not in variable}
        yield from (f"module {name} needs {each}" for each in sorted(required - given))


def _arguments(module: Module, schema: Schema) -> Iterator[str]:
    for kind, bodies in (("resources", module.resources), ("data", module.data)):
        for address, body in bodies.items():
            shape = schema[kind].get(address.split(".")[0])
            if shape is None:
                yield f"{address}: its type is not in {SCHEMA.name}"
                continue
            given = {key: value for key, value in body.items() if key not in _META}
            yield from _block(address, given, shape)


def _block(where: str, body: Body, shape: Schema) -> Iterator[str]:
    blocks, attributes = shape.get("blocks", {}), shape["attributes"]
    inner = [(name, content) for name in body if name in blocks for content in _blocks(body[name])]
    for dynamic in body.get("dynamic", ()):
        inner += [(name, content) for name, made in dynamic.items() for content in made["content"]]
    for name in body:
        if name in blocks or name == "dynamic":
            continue
        if name not in attributes:
            yield f"{where} takes no {name}"
        elif attributes[name].endswith(" computed"):
            yield f"{where}: {name} cannot be set"
    for name, content in inner:
        if name in blocks:
            yield from _block(f"{where}.{name}", content, blocks[name])
        else:
            yield f"{where} takes no block {name}"
    given = {*body, *(name for name, _ in inner)}
    needed = [name for name, kind in attributes.items() if kind.endswith(" required")]
    needed += [name for name, block in blocks.items() if block.get("required")]
    yield from (f"{where} needs {name}" for name in needed if name not in given)


def _blocks(value: Any) -> list[Body]:
    return [content for content in value if isinstance(content, Mapping)] if isinstance(value, list) else []


def _forbidden(module: Module) -> Iterator[str]:
    for source in sorted(module.path.glob("*.tf")):
        for what, pattern in _FORBIDDEN.items():
            if pattern.search(source.read_text(encoding="utf-8")):
                yield f"{source.name} has {what}"


def _versions(module: Module) -> Iterator[str]:
    asked = [str(block.get("required_version", "")) for block in module.settings]
    for block in module.settings:
        for providers in block.get("required_providers", ()):
            asked += [str(provider["version"]) for provider in providers.values()]
    if len(asked) < 2 or not all(">=" in version and "<" in version for version in asked):
        yield "versions of Terraform and of the provider need a lower and an upper bound"


def main() -> int:
    """Print the faults of all modules; 1 if there are any."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    found = [fault for path in folders() for fault in faults(load(path), schema)]
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
