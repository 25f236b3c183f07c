"""The permissions in two forms: roles for Terraform, and a page for whoever reviews the deployment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from runtender.permissions.bindings import BINDINGS, RBAC
from runtender.permissions.identities import CALLERS, WHO, Grant, Identity
from runtender.permissions.needs import KUBERNETES, NEEDS, Need, Where

Roles = Mapping[tuple[Identity, Where], Mapping[str, str]]

_HEAD = """\
# Who may do what, and why

Written by `make permissions` from the table in `shared/runtender/permissions`; do not edit. `permissions.json` beside the
control plane's Terraform has the same roles, each named `<identity>_<where>`.

Each identity is a service account of its own (those called agents are Google's). No permission is here that no call needs:
tests play the plane against simulated services, hold every call against this table, and fail for a row that nothing calls.
On a standing cluster of GKE the cluster's own rules grant (`infra/modules/gke/rbac.yaml.tftpl`), as `group/resource:verb`.
There are no keys, no administrators and no primitive roles. Nobody, the plane included, may change or delete a marker.

Logs of the functions need no permission: Cloud Run takes them from standard output. The machines' boot image is public.
"""


def roles() -> Roles:
    """Return the permissions that IAM grants to each identity by where they are bound, each with why it is needed."""
    return {key: permissions for key, permissions in _granted().items() if key[1] not in KUBERNETES}


def rules() -> Roles:
    """Return what clusters themselves grant: `group/resource:verb`, each with why it is needed."""
    return {key: permissions for key, permissions in _granted().items() if key[1] in KUBERNETES}


def _granted() -> Roles:
    found: dict[tuple[Identity, Where], dict[str, list[str]]] = {}
    for identity, grants in CALLERS.items():
        for need, why in _needs(grants):
            whys = found.setdefault((identity, need.where), {}).setdefault(need.permission, [])
            if why not in whys:
                whys.append(why)
    return {
        key: {permission: "; ".join(whys) for permission, whys in sorted(permissions.items())}
        for key, permissions in found.items()
    }


def _needs(grants: tuple[Grant | Need, ...]) -> Iterator[tuple[Need, str]]:
    for grant in grants:
        if isinstance(grant, Need):
            yield grant, grant.why
        else:
            for need in NEEDS[grant.call]:
                yield need, need.why or grant.why


def roles_json() -> str:
    """Return `{role: {permission: why}}` as text, for Terraform's `jsondecode`."""
    named = {f"{identity}_{where}": permissions for (identity, where), permissions in roles().items()}
    return json.dumps(named, indent=2) + "\n"


def page() -> str:
    """Return the reviewer's page: who has which permission, on what, and why, and where each role is bound."""
    return "\n".join([_HEAD, *_identities(), *_permissions(), *_bindings()]) + "\n"


def _identities() -> Iterator[str]:
    yield "## Identities\n"
    yield "| identity | who that is |\n|---|---|"
    yield from (f"| {identity} | {who} |" for identity, who in WHO.items())
    yield ""


def _permissions() -> Iterator[str]:
    yield "## Permissions\n"
    yield "| permission | on | identities | why |\n|---|---|---|---|"
    holders: dict[tuple[str, Where, str], list[str]] = {}
    for (identity, where), permissions in _granted().items():
        for name, why in permissions.items():
            holders.setdefault((name, where, why), []).append(identity)
    for (name, where, why), identities in sorted(holders.items()):
        yield f"| `{name}` | {where} | {', '.join(identities)} | {why} |"
    yield ""


def _bindings() -> Iterator[str]:
    yield "## Where a role is bound\n"
    yield "| on | the policy of | condition |\n|---|---|---|"
    for where, binding in BINDINGS.items():
        condition = f"`{binding.condition}`".replace("|", "\\|") if binding.condition else ""
        yield f"| {where} | {binding.resource} | {condition} |"
    yield from (f"| {where} | {resource} | |" for where, resource in RBAC.items())
