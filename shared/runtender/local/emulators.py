"""Google's own emulators of Firestore and Pub/Sub: found on this machine, started, and ended with whoever started them.

They are Java programs of the Google Cloud SDK. They are started as such, because `gcloud emulators` leaves the Java process
behind when it is told to end. One that runs already is used where the official clients' own variable names it.
"""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import requests

from runtender.local.errors import LocalCloudError

# Either is content with half of it, and starts a third faster this way.
_SMALL_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Java does not notice that whoever started it is gone. The shell that waits for it does: its standard input ends. (The kernel
# could tell Java if a function were run between fork and exec, but gRPC's threads do not survive such a fork.)
_TETHERED = """
exec 3<&0
"$@" </dev/null 3<&- &
java=$!
{ read -r _ <&3; kill -9 "$java"; } 2>/dev/null &
wait "$java"
kill "$!" 2>/dev/null
"""
# Two seconds on an idle machine.
_START_S = 60.0
_STOP_S = 10.0
_POLL_S = 0.1
_PROBE_S = 5.0
_ASK_GCLOUD_S = 30.0
_LAST_WORDS = 2000
_GIVEN_AWAY, _TRIED_PORTS = range(20_000, 30_000), 100
_SDK_ROOT = "CLOUDSDK_ROOT_DIR"


@dataclass(frozen=True, kw_only=True, slots=True)
class Emulator:
    """One of the emulators. `jar` is a pattern below the SDK's folder, `arguments` start it (its address excepted).

    `variable` is what the official clients read; `component` is its name in `gcloud components install`.
    """

    name: str
    variable: str
    component: str
    jar: str
    arguments: tuple[str, ...]


FIRESTORE = Emulator(
    name="firestore",
    variable="FIRESTORE_EMULATOR_HOST",
    component="cloud-firestore-emulator",
    jar="platform/cloud-firestore-emulator/cloud-firestore-emulator.jar",
    arguments=("-cp", "{jar}", "com.google.cloud.datastore.emulator.firestore.CloudFirestore"),
)
PUBSUB = Emulator(
    name="pubsub",
    variable="PUBSUB_EMULATOR_HOST",
    component="pubsub-emulator",
    jar="platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar",
    arguments=("-jar", "{jar}"),
)
EMULATORS = (FIRESTORE, PUBSUB)


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """An emulator of this machine: it runs at `host` (`name:port`), or `command` starts it once told an address."""

    emulator: Emulator
    host: str | None = None
    command: tuple[str, ...] = ()


def find_emulators(
    environment: Mapping[str, str], wanted: Iterable[Emulator] = EMULATORS
) -> tuple[Found, ...]:
    """Return where each wanted emulator is; `LocalCloudError` says of all that are missing how to install them."""
    java = shutil.which("java", path=environment.get("PATH", ""))
    found: list[Found] = []
    faults: list[str] = []
    for emulator in wanted:
        if host := environment.get(emulator.variable):
            found.append(Found(emulator=emulator, host=host))
        elif (jar := _jar(emulator, environment)) is None:
            faults.append(_how_to_install(emulator))
        elif java is None:
            faults.append(
                f"Google's {emulator.name} emulator needs Java 11 or newer, and there is no java in PATH"
            )
        else:
            arguments = (argument.format(jar=jar) for argument in emulator.arguments)
            found.append(Found(emulator=emulator, command=(java, *_SMALL_JVM, *arguments)))
    if faults:
        raise LocalCloudError("\n".join(faults))
    return tuple(found)


def emulator_hosts(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that name an emulator which runs already."""
    names = (emulator.variable for emulator in EMULATORS)
    return {name: environment[name] for name in names if environment.get(name)}


def emulator_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return all variables of an environment that say where the emulators are."""
    sdk = {_SDK_ROOT: environment[_SDK_ROOT]} if environment.get(_SDK_ROOT) else {}
    return {**sdk, **emulator_hosts(environment)}


class RunningEmulator(AbstractContextManager["RunningEmulator"]):
    """An emulator that was found: one that runs is used, another is started, and ended by `close`.

    It works in `folder`. `host` is what its variable takes. `await_ready` has to be called before it is used, so that
    several can start at the same time.
    """

    def __init__(self, found: Found, folder: Path, log: Path) -> None:
        self.emulator = found.emulator
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        if found.host is not None:
            self.host = found.host
            return
        port = free_port()
        self.host = f"127.0.0.1:{port}"
        command = (*found.command, "--host=127.0.0.1", f"--port={port}")
        with log.open("wb") as words:
            self._process = subprocess.Popen(
                ["sh", "-c", _TETHERED, found.emulator.name, *command],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=words,
                stderr=words,
                # Ctrl-C is for whoever started the emulator, who then ends it in order.
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        """Where it answers HTTP."""
        return f"http://{self.host}"

    @property
    def is_ours(self) -> bool:
        """True for one that was started here, and that nobody else uses."""
        return self._process is not None

    def await_ready(self) -> None:
        """Wait until it answers; `LocalCloudError` if it does not."""
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if self._process is None:
                where = f"{self.emulator.variable}={self.host}"
                raise LocalCloudError(
                    f"no {self.emulator.name} emulator answers at {where}; unset it, or start one"
                )
            if self._process.poll() is not None or time.monotonic() >= deadline:
                raise LocalCloudError(
                    f"Google's {self.emulator.name} emulator did not start; {self.log} ends with:\n{self._last_words()}"
                )
            time.sleep(_POLL_S)

    def close(self) -> None:
        """End it, if it was started here. May be called twice."""
        if self._process is not None:
            self._process.communicate(timeout=_STOP_S)

    def _answers(self) -> bool:
        # Its port is open before it speaks HTTP.
        with suppress(requests.RequestException), requests.Session() as session:
            session.trust_env = False
            return session.get(self.url, timeout=_PROBE_S).ok
        return False

    def _last_words(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-_LAST_WORDS:]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _jar(emulator: Emulator, environment: Mapping[str, str]) -> Path | None:
    for root in _sdk_roots(environment):
        if (newest := max(root.glob(emulator.jar), default=None)) is not None:
            return newest
    return None


def _sdk_roots(environment: Mapping[str, str]) -> Iterator[Path]:
    """Name the folders that may be the SDK's, the quick guesses first."""
    if root := environment.get(_SDK_ROOT):
        yield Path(root)
    gcloud = shutil.which("gcloud", path=environment.get("PATH", ""))
    if gcloud is None:
        return
    yield Path(gcloud).resolve().parents[1]
    # Some installers put a wrapper elsewhere, which only gcloud itself sees through.
    command = [gcloud, "info", "--format=value(installation.sdk_root)"]
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, timeout=_ASK_GCLOUD_S
        )
        if root := said.stdout.strip():
            yield Path(root)


def _how_to_install(emulator: Emulator) -> str:
    package = f"google-cloud-cli-{emulator.component.removeprefix('cloud-')}"
    return (
        f"Google's {emulator.name} emulator is not installed: run 'gcloud components install {emulator.component}' or "
        f"'apt-get install {package}' (both of the Google Cloud SDK), or set {emulator.variable} to one that runs"
    )


def free_port() -> int:
    """Return a port for a process that will bind it itself; raises `LocalCloudError` when none is free.

    It lies below those that systems give out by themselves, of which the next program might get it in between.
    """
    for port in random.SystemRandom().sample(_GIVEN_AWAY, _TRIED_PORTS):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise LocalCloudError(f"no port seems to be free from {_GIVEN_AWAY.start} to {_GIVEN_AWAY.stop - 1}")
