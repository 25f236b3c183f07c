"""YAML as another way to write JSON: no dates, no infinities, no key twice, and no more than it seems to be."""

from __future__ import annotations

import json
from typing import Any

import yaml


class _JsonLikeLoader(yaml.SafeLoader):
    """YAML without its dates: in a config, 2024-12-31 is text. Nor does it take one of two values of a key."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Here and not when the mapping is made: merge keys are written out by then, and may be overridden.
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"{key.value!r} is given twice"
                raise yaml.composer.ComposerError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return node


_JsonLikeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(text: str, most_bytes: int) -> Any:
    """Return what YAML says, as JSON; raises `ValueError` where that cannot be said, or takes more than `most_bytes`."""
    try:
        loaded = yaml.load(text, _JsonLikeLoader)  # noqa: S506 - a SafeLoader
        _check_expansion(loaded, most_bytes)
        return json.loads(json.dumps(loaded, allow_nan=False))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    except TypeError as error:
        raise ValueError(f"it holds what JSON cannot say ({error})") from error


def _check_expansion(loaded: Any, most_bytes: int) -> None:
    """Refuse aliases of aliases: a few lines of YAML can stand for more JSON than there is memory."""
    size = 0
    for piece in json.JSONEncoder(allow_nan=False).iterencode(loaded):
        size += len(piece)
        if size > most_bytes:
            raise ValueError(f"it is larger than {most_bytes >> 20} MiB when its aliases are written out")
