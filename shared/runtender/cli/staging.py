"""Code for the worker as one zip, named by its content, so that a run can be repeated with exactly the code it had.

The same sources give the same bytes on every checkout: files in order of their path, no times, no owners, no modes.
(Only another zlib could compress them otherwise; then the same code is stored twice, which is harmless.)
"""

from __future__ import annotations

import ast
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from runtender.client.object_uri import ObjectUri
from runtender.errors import Rejected
from runtender.ports import Objects

# The earliest time that a zip entry can carry.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_READABLE_FILE = 0o100644
# Modules that hold the `main` of a worker package, likeliest first.
_ENTRY_MODULES = ("vertex_entry", "main", "__main__", "worker", "__init__")


@dataclass(frozen=True, kw_only=True, slots=True)
class CodePackage:
    """A package ready to be stored. `entrypoint` is `module:function`, None where no `main` stands out."""

    name: str
    tag: str
    content: bytes
    files: tuple[str, ...]
    entrypoint: str | None

    @property
    def object_name(self) -> str:
        """Where it lies in the code bucket."""
        return f"runs/{self.name}-{self.tag}.zip"


def build_package(folder: Path) -> CodePackage:
    """Zip the Python files of the package in `folder`; raises `Rejected` where there is no package."""
    root = folder.resolve()
    if not (root / "__init__.py").is_file():
        remedy = "name the package's own folder, the one with __init__.py"
        raise Rejected.because("DIR", f"{folder} is not a Python package", remedy)
    if not root.name.isidentifier():
        raise Rejected.because(
            "DIR", f"{root.name!r} cannot be imported", "rename the folder to a Python name"
        )
    sources = _sources(root)
    content = _zip(sources)
    return CodePackage(
        name=root.name,
        # A name for content, not a protection; eight digits are what workers' tools already know.
        tag=hashlib.md5(content, usedforsecurity=False).hexdigest()[:8],
        content=content,
        files=tuple(sources),
        entrypoint=_entrypoint(root.name, sources),
    )


def upload_package(package: CodePackage, objects: Objects, bucket: str) -> tuple[ObjectUri, bool]:
    """Store the package; return where it lies, and whether it is new there."""
    uri = ObjectUri(bucket, package.object_name)
    created = objects.create(bucket, uri.name, package.content, content_type="application/zip")
    return uri, created


def _sources(root: Path) -> Mapping[str, bytes]:
    """Return the package's Python files by their path in the zip, in order of it; hidden and cache folders left out."""
    names = {
        path.relative_to(root.parent).as_posix(): path
        for path in root.rglob("*.py")
        if path.is_file() and not _is_left_out(path.relative_to(root).as_posix())
    }
    return {name: names[name].read_bytes() for name in sorted(names)}


def _is_left_out(name: str) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in PurePosixPath(name).parts)


def _zip(sources: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sources.items():
            entry = zipfile.ZipInfo(name, date_time=_NO_TIME)
            entry.create_system = _UNIX
            entry.external_attr = _READABLE_FILE << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    return buffer.getvalue()


def _entrypoint(package: str, sources: Mapping[str, bytes]) -> str | None:
    for module in _ENTRY_MODULES:
        source = sources.get(f"{package}/{module}.py")
        if source is not None and _defines_main(f"{package}/{module}.py", source):
            return f"{package if module == '__init__' else f'{package}.{module}'}:main"
    return None


def _defines_main(name: str, source: bytes) -> bool:
    try:
        tree = ast.parse(source, filename=name)
    except (SyntaxError, ValueError) as error:
        raise Rejected.because("DIR", f"{name} is not Python: {error}", "mend it before staging") from error
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
