"""The folder of one simulated machine: where what lies, for the runner outside and the programs inside.

Standard library only: the programs inside read it at every call. What they load is kept small, because an interpreter's
start is most of what they cost: values are named tuples, since `dataclasses` alone would add a third.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class MachineFacts(NamedTuple):
    """What the programs inside a machine are told. Spans in seconds of real time.

    `package_root` is the folder that `runtender` is imported from; `worker_python` stands for the worker image's
    interpreter and `worker_environment` for the environment that image and cloud give every container. `images` are
    shell patterns of those that can be pulled (None: all but those named `missing`).
    """

    name: str
    python: str
    package_root: str
    worker_python: str
    worker_environment: Mapping[str, str]
    images: tuple[str, ...] | None = None
    gpus: int = 0
    grace_s: float = 120.0
    container_grace_s: float = 10.0


class MachineHome(NamedTuple):
    """The paths below one machine's folder."""

    root: Path

    @property
    def bin(self) -> Path:
        """Stand-ins for the guest's own commands; first on the PATH."""
        return self.root / "bin"

    @property
    def var(self) -> Path:
        """What `/var/lib` is on a real machine: it outlives a reboot."""
        return self.root / "var"

    @property
    def dev(self) -> Path:
        """What `/dev` is, as far as accelerators go."""
        return self.root / "dev"

    @property
    def tmp(self) -> Path:
        """What `/tmp` is."""
        return self.root / "tmp"

    @property
    def state(self) -> Path:
        """What the machine itself notes: process ids, whether it is going down."""
        return self.root / "state"

    @property
    def containers(self) -> Path:
        """One folder per container."""
        return self.root / "containers"

    @property
    def images(self) -> Path:
        """Names of the pulled images, one a line."""
        return self.root / "images"

    @property
    def curlrc(self) -> Path:
        """Where curl is told to find Google's hosts."""
        return self.root / "curl" / ".curlrc"

    @property
    def script(self) -> Path:
        """The startup script, as it came in the metadata."""
        return self.root / "startup-script"

    @property
    def machine_pid(self) -> Path:
        """The process id of the machine."""
        return self.state / "machine.pid"

    @property
    def script_pid(self) -> Path:
        """The process id of the startup script, leader of its group."""
        return self.state / "script.pid"

    @property
    def stopping(self) -> Path:
        """There while the machine goes down."""
        return self.state / "stopping"

    @property
    def facts_file(self) -> Path:
        """The facts as JSON."""
        return self.root / "machine.json"

    def make(self) -> None:
        """Create the folders; those that are there stay as they are."""
        for folder in (
            self.bin,
            self.var,
            self.dev,
            self.tmp,
            self.state,
            self.containers,
            self.curlrc.parent,
        ):
            folder.mkdir(parents=True, exist_ok=True)

    def write_facts(self, facts: MachineFacts) -> None:
        """Store what the programs inside are told."""
        self.facts_file.write_text(json.dumps(facts._asdict()), encoding="utf-8")

    def facts(self) -> MachineFacts:
        """Read it."""
        document: dict[str, Any] = json.loads(self.facts_file.read_text(encoding="utf-8"))
        if document["images"] is not None:
            document["images"] = tuple(document["images"])
        return MachineFacts(**document)
