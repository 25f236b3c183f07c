"""Writes the zip that is deployed: `python functions/bundle.py` at the checkout's root makes `dist/runtender-VERSION-HASH.zip`.

At its top lie the entry points and their locked requirements, beside them the package without what only people and the local
cloud use. The same sources give the same bytes, on any machine and at any time, so the name holds a hash of them: the same
name is the same code, and a deployment that would change nothing changes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]

# What no entry point loads.
LEFT_OUT = frozenset({"api.py", "cli", "client", "local", "permissions", "schemas", "web"})
# Code, and the files beside it that it reads. Anything else in a folder is there by chance.
_SUFFIXES = frozenset({".awk", ".json", ".py", ".sh"})
# The earliest time that a zip can tell, so that none is told.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16
_UNIX = 3
_HASH_DIGITS = 12


def contents(root: Path = ROOT) -> Mapping[str, bytes]:
    """Return every file of the zip by its name in it, sorted."""
    files = {
        "LICENSE": root / "LICENSE",
        "main.py": root / "functions" / "main.py",
        "requirements.txt": root / "functions" / "requirements.txt",
        **dict(_package(root / "shared" / "runtender")),
    }
    return {name: files[name].read_bytes() for name in sorted(files)}


def _package(package: Path) -> Iterator[tuple[str, Path]]:
    for path in package.rglob("*"):
        inside = path.relative_to(package)
        if path.suffix in _SUFFIXES and inside.parts[0] not in LEFT_OUT and path.is_file():
            yield f"{package.name}/{inside.as_posix()}", path


def write_bundle(folder: Path, root: Path = ROOT) -> Path:
    """Write the zip of the checkout at `root` into `folder`; return where it is."""
    files = contents(root)
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"runtender-{version}-{_digest(files)}.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            # Stored, not packed: what packing gives depends on the version of zlib.
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.external_attr, entry.create_system = _MODE, _UNIX
            archive.writestr(entry, content)
    return target


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:_HASH_DIGITS]


def main() -> None:
    """Write the bundle of this checkout and print where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where to write it")
    print(write_bundle(parser.parse_args().folder))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
