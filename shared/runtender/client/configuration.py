"""Which plane is meant, and who says so.

A setting is taken from the first of these that has it: a flag, the environment, the project's file, the person's file,
gcloud's active project (the project alone). A local cloud that runs in the folder goes before all but flags, and alone:
a plane is never put together from two. Naming a backend, or a project by a flag, looks past it.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from runtender.client.gcloud import active_project
from runtender.client.local_cloud import cloud_environment, cloud_folder, points_at_a_plane
from runtender.client.settings_file import find_project_file, find_user_file, read_settings_file
from runtender.errors import Rejected

_PROJECT, _BACKEND = "SF_PROJECT_ID", "SF_BACKEND"
_NO_PLANE = (
    "no plane to talk to: set SF_PROJECT_ID and SF_CODE_BUCKET for the one in a Google Cloud project, "
    "or start a local one with 'runtender local up'"
)


class Source(StrEnum):
    """Who said what a setting is, strongest first."""

    FLAG = "flag"
    LOCAL_CLOUD = "local cloud"
    ENVIRONMENT = "environment"
    PROJECT_FILE = "project file"
    USER_FILE = "user file"
    GCLOUD = "gcloud"


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """What one source says, by variable. `where` is a file or folder, empty where there is none."""

    source: Source
    values: Mapping[str, str]
    where: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A setting, who won, and who said something else in vain."""

    name: str
    value: str
    source: Source
    where: str
    overruled: tuple[Source, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """All that was said, strongest first. `warning` is what whoever runs a command should hear about it."""

    layers: tuple[Layer, ...]
    warning: str = ""

    @property
    def values(self) -> dict[str, str]:
        """The value that won, by variable."""
        return {name: value for layer in reversed(self.layers) for name, value in layer.values.items()}

    def choices(self) -> list[Choice]:
        """Return each setting with its winner, by name."""
        return [self._choice(name) for name in sorted(self.values)]

    def adopt(self, environment: MutableMapping[str, str]) -> None:
        """Make `environment` say this and nothing else of a plane."""
        values = self.values
        for name in [name for name in environment if points_at_a_plane(name) and name not in values]:
            del environment[name]
        environment.update(values)

    def _choice(self, name: str) -> Choice:
        winner, *others = (layer for layer in self.layers if name in layer.values)
        value = winner.values[name]
        return Choice(
            name=name,
            value=value,
            source=winner.source,
            where=winner.where,
            overruled=tuple(layer.source for layer in others if layer.values[name] != value),
        )


def gather(environment: Mapping[str, str], start: Path, flags: Mapping[str, str]) -> Configuration:
    """Collect what is said about the plane, for a command that runs in `start`.

    Raises `Rejected` for a file that cannot be read, and where nothing says which plane is meant.
    """
    flag = Layer(source=Source.FLAG, values=flags)
    if not (flags.get(_PROJECT) or flags.get(_BACKEND) or environment.get(_BACKEND)):
        folder = cloud_folder(start)
        local = None if folder is None else cloud_environment(folder)
        if local is not None:
            layer = Layer(source=Source.LOCAL_CLOUD, values=local, where=str(folder))
            return Configuration(layers=(flag, layer), warning=_passed_over(environment, layer))
    said = (flag, _environment(environment), _project_file(start), _user_file(environment))
    layers = tuple(layer for layer in said if layer.values)
    if not layers:
        raise Rejected.because("", _NO_PLANE)
    return Configuration(layers=(*layers, _gcloud(environment)))


def _passed_over(environment: Mapping[str, str], local: Layer) -> str:
    project = environment.get(_PROJECT)
    if not project or project == local.values.get(_PROJECT):
        return ""
    return f"using the local cloud of {local.where}; set SF_BACKEND=google for {project}"


def _environment(environment: Mapping[str, str]) -> Layer:
    named = {name: value for name, value in environment.items() if value and points_at_a_plane(name)}
    return Layer(source=Source.ENVIRONMENT, values=named)


def _project_file(start: Path) -> Layer:
    return _file(Source.PROJECT_FILE, find_project_file(start))


def _user_file(environment: Mapping[str, str]) -> Layer:
    return _file(Source.USER_FILE, find_user_file(environment))


def _file(source: Source, path: Path | None) -> Layer:
    if path is None:
        return Layer(source=source, values={})
    return Layer(source=source, values=read_settings_file(path), where=str(path))


def _gcloud(environment: Mapping[str, str]) -> Layer:
    project, where = active_project(environment) or ("", "")
    return Layer(source=Source.GCLOUD, values={_PROJECT: project} if project else {}, where=where)
