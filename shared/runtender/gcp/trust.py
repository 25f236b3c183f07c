"""Which certificates a connection accepts: the public ones, or those of one authority alone.

A cluster's address has a certificate of the cluster's own authority. Trusting that beside the public roots would let anybody
with a public certificate for the address speak for the cluster, so each connection trusts one side only. Nothing is written
to disk: a file could outlive the call, or be another's by the time it is read.
"""

from __future__ import annotations

import ssl
from typing import Any

import requests
from requests.adapters import HTTPAdapter

POOLED_CONNECTIONS = 16
"""Connections kept open: a function serves a few events at once, and each of them a few calls."""


def trusting(roots: str) -> HTTPAdapter:
    """Return an adapter that trusts the authorities in `roots` (PEM) alone, whatever the environment says.

    Raises ValueError when there is no certificate in it.
    """
    # Not `create_default_context`: its strict checks of extensions refuse authorities that clusters really have.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=roots)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"no certificate of an authority can be read: {error}") from error
    return _TrustingAdapter(context)


class _TrustingAdapter(HTTPAdapter):
    """An adapter with one context for all its connections: `verify` of a call or session, also off, changes nothing."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(pool_maxsize=POOLED_CONNECTIONS)

    def init_poolmanager(self, *sizes: Any, **options: Any) -> None:
        super().init_poolmanager(*sizes, **options, ssl_context=self._context)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, **options, ssl_context=self._context)

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        del verify
        return super().build_connection_pool_key_attributes(request, verify=True, cert=cert)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave the connection's roots as the context has them: the library would add the public ones."""
