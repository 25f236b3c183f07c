"""The HTTP plumbing under every simulated service.

A simulated service is a *core*: a function of a request and the present moment, without transport and without
a clock. `serve` puts a core behind a real loopback port for curl and the official clients; `CoreAdapter` puts
the same core behind a `requests` session in the same process, where a simulation holds the clock. Neither the
core nor its client can tell.
"""

from runtender.local.http.adapter import CoreAdapter
from runtender.local.http.authority import LocalAuthority
from runtender.local.http.messages import (
    DROPPED,
    CoreHandler,
    Fault,
    Faults,
    Handler,
    HttpRequest,
    HttpResponse,
    google_error,
    json_response,
    no_faults,
)
from runtender.local.http.server import RunningServer, by_prefix, on_clock, serve, utc_now

__all__ = [
    "DROPPED",
    "CoreAdapter",
    "CoreHandler",
    "Fault",
    "Faults",
    "Handler",
    "HttpRequest",
    "HttpResponse",
    "LocalAuthority",
    "RunningServer",
    "by_prefix",
    "google_error",
    "json_response",
    "no_faults",
    "on_clock",
    "serve",
    "utc_now",
]
