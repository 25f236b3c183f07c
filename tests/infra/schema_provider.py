"""Plays the Google provider towards Terraform, as far as its schema goes: `python schema_provider.py < pipe`.

Terraform speaks to a provider over gRPC, and takes one that already runs (TF_REATTACH_PROVIDERS). So a small server that
answers with `provider_schema.json` is enough for `terraform validate`, and for `terraform test` with mocked resources: core
then evaluates every expression, type and condition of the modules, without a network and without a plug-in. Nothing is
created, and the API's own opinion of the values is not asked.

Prints the value of TF_REATTACH_PROVIDERS once it listens, and ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]

SCHEMA = Path(__file__).with_name("provider_schema.json")
PROTOCOL = 5

# Numbers of fields in HashiCorp's tfplugin5.proto.
_ATTRIBUTE = {"name": 1, "type": 2, "required": 4, "optional": 5, "computed": 6}
_NESTED = {"name": 1, "block": 2, "nesting": 3, "least": 4, "most": 5}
_NESTINGS = {"list": 2, "set": 3}
_BLOCK_ATTRIBUTE, _BLOCK_NESTED, _SCHEMA_BLOCK = 2, 3, 2
_PROVIDER, _RESOURCES, _DATA = 1, 2, 3

Answer = Callable[[bytes, grpc.ServicerContext], bytes]


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _part(field: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def _type(words: str) -> str:
    """`list(string)` -> Terraform's `["list","string"]`."""
    kind, parenthesis, element = words.removesuffix(")").partition("(")
    if parenthesis:
        return f'["{kind}",{_type(element)}]'
    return json.dumps("dynamic" if kind == "any" else kind)


def _attribute(name: str, words: str) -> bytes:
    kind, _, how = words.partition(" ")
    return (
        _part(_ATTRIBUTE["name"], name)
        + _part(_ATTRIBUTE["type"], _type(kind))
        + _number(_ATTRIBUTE[how or "optional"], 1)
    )


def _block(shape: Mapping[str, Any]) -> bytes:
    parts = [_part(_BLOCK_ATTRIBUTE, _attribute(*each)) for each in shape["attributes"].items()]
    for name, inner in shape.get("blocks", {}).items():
        nested = (
            _part(_NESTED["name"], name)
            + _part(_NESTED["block"], _block(inner))
            + _number(_NESTED["nesting"], _NESTINGS[inner["nesting"]])
            + _number(_NESTED["least"], int(inner.get("required", False)))
            + _number(_NESTED["most"], inner.get("max", 0))
        )
        parts.append(_part(_BLOCK_NESTED, nested))
    return b"".join(parts)


def _schema(shape: Mapping[str, Any]) -> bytes:
    return _part(_SCHEMA_BLOCK, _block(shape))


def _schemas(document: Mapping[str, Any]) -> bytes:
    answer = _part(_PROVIDER, _schema(document["provider"]))
    for field, shapes in ((_RESOURCES, document["resources"]), (_DATA, document["data"])):
        for name, shape in shapes.items():
            answer += _part(field, _part(1, name) + _part(2, _schema(shape)))
    return answer


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The few methods that Terraform calls before it would plan anything by itself; all others are unimplemented."""

    def __init__(self, schemas: bytes) -> None:
        self._answers: Mapping[str, Answer] = {
            "GetSchema": lambda _request, _context: schemas,
            # The configuration as it was asked, in the field where the answer has it too.
            "PrepareProviderConfig": lambda request, _context: request,
            "ValidateResourceTypeConfig": _content,
            "ValidateDataSourceConfig": _content,
            "Configure": _content,
            "Stop": _content,
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        answer = self._answers.get(handler_call_details.method.rpartition("/")[2])
        return grpc.unary_unary_rpc_method_handler(answer) if answer else None


def _content(_request: bytes, _context: grpc.ServicerContext) -> bytes:
    return b""


def main() -> None:
    schemas = _schemas(json.loads(SCHEMA.read_text(encoding="utf-8")))
    server = grpc.server(ThreadPoolExecutor(max_workers=4), handlers=[_Handlers(schemas)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    address = {"Network": "tcp", "String": f"127.0.0.1:{port}"}
    attached = {
        "Protocol": "grpc",
        "ProtocolVersion": PROTOCOL,
        "Pid": os.getpid(),
        "Test": True,
        "Addr": address,
    }
    sys.stdout.write(json.dumps({"hashicorp/google": attached}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop(grace=None)


if __name__ == "__main__":
    main()
