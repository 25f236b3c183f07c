"""The methods of `compute.instances`, each a function of the project's state, the call and the moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from runtender.local.compute import errors
from runtender.local.compute.errors import ApiError
from runtender.local.compute.instances import Instance
from runtender.local.compute.listing import Document, list_document, name_of, page_of, scoped_name_of
from runtender.local.compute.operations import API
from runtender.local.compute.orders import Desk
from runtender.local.compute.routes import Call
from runtender.local.compute.serial import Console
from runtender.local.compute.state import Method, ProjectState
from runtender.local.scenario import Shape


def insert(state: ProjectState, call: Call, now: datetime) -> Document:
    """Begin to make a machine; a stock-out or a lack of quota shows in the operation."""
    try:
        body = call.request.json()
    except ValueError as error:
        raise ApiError(400, "parseError", "Parse Error") from error
    if repeated := state.repeated(call, now):
        return repeated.document()
    if state.schemas:
        state.schemas.check_body("Instance", body)
    desk = Desk(
        project=state.project,
        zone=call.zone,
        catalogue=state.catalogue,
        shortest_run=state.timings.shortest_run,
    )
    order = desk.read(body)
    if state.machines.find(call.zone, order.name):
        raise errors.already_exists(order.path)
    user, request_id = state.user_of(call), call.query.get("requestId", "")
    if refusal := state.quotas.refusal(order, state.orders()):
        operation = state.machines.refuse(order, now, user=user, request_id=request_id, error=refusal)
    else:
        shortage = state.stock.shortage(order, now) if state.stock else None
        if shortage and shortage.shape is Shape.HTTP:
            raise errors.stockout_answer(f"projects/{state.project}/zones/{call.zone}")
        operation = state.machines.insert(order, now, user=user, request_id=request_id, shortage=shortage)
    state.remember(call, operation, now)
    return operation.document()


def delete(state: ProjectState, call: Call, now: datetime) -> Document:
    """Begin to remove a machine."""
    if repeated := state.repeated(call, now):
        return repeated.document()
    operation = state.machines.delete(
        _find(state, call), now, user=state.user_of(call), request_id=call.query.get("requestId", "")
    )
    state.remember(call, operation, now)
    return operation.document()


def get(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return one machine."""
    return _find(state, call).document()


def serial_port_output(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return what a machine printed on its console; only port 1 carries it."""
    instance = _find(state, call)
    port = call.whole("port", 1)
    if not 1 <= port <= 4:
        raise errors.invalid_value("port", port, "Value must be in the range [1, 4].")
    console = state.consoles.get(instance.id) if port == 1 else None
    output = (console or Console()).document(call.whole("start", 0))
    return {**output, "selfLink": f"{API}/{instance.order.path}/serialPort"}


def list_zone(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return a page of one zone's machines."""
    documents = _documents(one for one in state.machines.instances if one.order.zone == call.zone)
    return list_document("compute#instanceList", call, page_of(documents, call.query, name_of))


def list_all(state: ProjectState, call: Call, _now: datetime) -> Document:
    """Return a page of the project's machines by zone. Zones that do not answer are named; their machines are missing."""
    reached = (one for one in state.machines.instances if one.order.zone not in state.unreachable)
    page = page_of(_documents(reached), call.query, scoped_name_of)
    document = list_document("compute#instanceAggregatedList", call, page)
    document["items"] = {f"zones/{zone}": _scope(state, zone, page.items) for zone in state.catalogue.zones}
    if state.unreachable:
        base = f"{API}/projects/{state.project}/zones"
        document["unreachables"] = [f"{base}/{zone}" for zone in sorted(state.unreachable)]
    return document


def _scope(state: ProjectState, zone: str, instances: Sequence[Document]) -> Document:
    found = [instance for instance in instances if instance["zone"].endswith(f"/{zone}")]
    if found:
        return {"instances": found}
    code, words = "NO_RESULTS_ON_PAGE", f"There are no results for scope 'zones/{zone}' on this page."
    if zone in state.unreachable:
        code, words = "UNREACHABLE", f"The scope 'zones/{zone}' is unreachable."
    return {"warning": {"code": code, "message": words, "data": [{"key": "scope", "value": f"zones/{zone}"}]}}


def _find(state: ProjectState, call: Call) -> Instance:
    instance = state.machines.find(call.zone, call.name)
    if instance is None:
        raise errors.not_found(f"projects/{state.project}/zones/{call.zone}/instances/{call.name}")
    return instance


def _documents(instances: Iterable[Instance]) -> list[Document]:
    return [instance.document() for instance in instances]


METHODS: Mapping[str, Method] = {
    "compute.instances.insert": insert,
    "compute.instances.delete": delete,
    "compute.instances.get": get,
    "compute.instances.getSerialPortOutput": serial_port_output,
    "compute.instances.list": list_zone,
    "compute.instances.aggregatedList": list_all,
}
