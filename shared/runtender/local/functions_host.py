"""The process of the functions: the plane's entry points behind one port, as functions-framework runs each in the cloud.

It is a process of its own so that it can be killed at any moment without taking the simulated services along. It ends
when the other end of its tether does, however that came about.
"""

from __future__ import annotations

import argparse
import os
import socket
import threading
from collections.abc import Sequence

import functions_framework
from werkzeug.exceptions import NotFound
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import WSGIRequestHandler, make_server

from runtender.local.functions_process import ENTRY_POINTS, READY


class _QuietHandler(WSGIRequestHandler):
    """The functions log what they do; a line per request would say it twice."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the entry points of a source file on a listening socket that was handed down."""
    parser = argparse.ArgumentParser(prog="functions_host", description=__doc__)
    parser.add_argument("--source", required=True, help="the file that defines the entry points")
    parser.add_argument("--listener", type=int, required=True, help="descriptor of the listening socket")
    parser.add_argument("--tether", type=int, required=True, help="descriptor of a socket to the parent")
    options = parser.parse_args(arguments)
    tether = socket.socket(fileno=options.tether)
    # Each entry point is an app of its own that loads the source for itself: as apart as two deployed functions.
    apps = {
        f"/{name}": functions_framework.create_app(name, options.source)  # type: ignore[no-untyped-call]
        for name in ENTRY_POINTS
    }
    server = make_server(
        "127.0.0.1",
        0,
        DispatcherMiddleware(NotFound(), apps),
        threaded=True,
        request_handler=_QuietHandler,
        fd=options.listener,
    )
    tether.sendall(READY)
    threading.Thread(target=_end_with, args=(tether,), daemon=True).start()
    server.serve_forever()


def _end_with(tether: socket.socket) -> None:
    while tether.recv(1):
        pass
    # At once, with whatever is under way: the plane has to bear that anyway.
    os._exit(1)


if __name__ == "__main__":
    main()
