"""A small threaded server on the loopback address: HTTP/1.1 with keep-alive, plain or TLS, and closable."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Any, cast

from runtender.local.http.accepting import Accepting
from runtender.local.http.authority import LocalAuthority
from runtender.local.http.messages import CoreHandler, Handler, HttpRequest, HttpResponse, google_error

# Nothing the local cloud carries comes near this; a client that sends more is broken.
_MAX_BODY_BYTES = 512 * 1024 * 1024
# How long `close` waits for each handler that is still answering.
_CLOSE_WAIT_S = 5.0

_BODILESS = frozenset({204, 304})


def utc_now() -> datetime:
    """Return the machine's time: the clock of every served core."""
    return datetime.now(UTC)


def on_clock(
    handler: CoreHandler,
    now: Callable[[], datetime] = utc_now,
    lock: AbstractContextManager[object] | None = None,
) -> Handler:
    """Give a core a clock and one caller at a time, because cores know no threads.

    Share `lock` with whatever else drives the core.
    """
    gate = lock or threading.Lock()

    def handle(request: HttpRequest) -> HttpResponse:
        with gate:
            return handler(request, now())

    return handle


def by_prefix(routes: Mapping[str, Handler]) -> Handler:
    """Return a handler that asks the one with the longest matching path prefix, passing the path on whole."""
    ordered = sorted(routes.items(), key=lambda route: -len(route[0]))

    def handle(request: HttpRequest) -> HttpResponse:
        for prefix, handler in ordered:
            if request.path.startswith(prefix):
                return handler(request)
        return google_error(404, "notFound", f"nothing is served at {request.path}")

    return handle


def serve(handler: Handler, *, port: int = 0, tls: LocalAuthority | None = None) -> RunningServer:
    """Serve `handler` on a loopback port (0: any free one), over HTTPS where `tls` is given.

    One handler may be served several times. Raises OSError when the port is taken.
    """
    server = _Server(("127.0.0.1", port), handler)
    if tls is not None:
        # The handshake waits for the connection's own thread, so that a slow client holds up nobody.
        server.socket = tls.server_context().wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    return RunningServer(server, "https" if tls else "http")


def thread_name(port: int) -> str:
    """Return the name of each thread of the server at a port."""
    return f"http server {port}"


class RunningServer:
    """A server that runs in threads until `close`; also a context manager."""

    def __init__(self, server: _Server, scheme: str) -> None:
        self._server = server
        self.port: int = server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._accepting = Accepting(server, thread_name(self.port))

    def close(self) -> None:
        """Stop accepting, break open connections and wait for their threads. May be called twice."""
        self._accepting.close()
        self._server.end_connections()

    def __enter__(self) -> RunningServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(HTTPServer):
    """A thread per connection. They are remembered, because a kept-alive one would outlive the server."""

    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Handler) -> None:
        super().__init__(address, _Exchange)
        self.handler = handler
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._gate = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self._converse,
            args=(request, client_address),
            daemon=True,
            name=thread_name(self.server_port),
        )
        with self._gate:
            self._connections[request] = thread
        thread.start()

    def _converse(self, request: socket.socket, client_address: Any) -> None:
        try:
            # An OSError means that the client went away, or did not trust us; it knows.
            with suppress(OSError):
                self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)
            with self._gate:
                self._connections.pop(request, None)

    def end_connections(self) -> None:
        with self._gate:
            open_now = dict(self._connections)
        for connection in open_now:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in open_now.values():
            thread.join(_CLOSE_WAIT_S)


class _Exchange(BaseHTTPRequestHandler):
    """Reads the requests of one connection and writes what the handler answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # Head and body leave in one packet.
    wbufsize = 64 * 1024

    def do_any(self) -> None:
        """Answer one request."""
        try:
            body = self._body()
        except ValueError:
            self._refuse(400, "badRequest", "the length of the body cannot be read")
            return
        if body is None:
            self._refuse(413, "uploadTooLarge", f"the body is over {_MAX_BODY_BYTES} bytes")
            return
        headers = dict(self.headers.items())
        request = HttpRequest.to_url(self.command, self.path, headers=headers, body=body)
        self._answer(cast("_Server", self.server).handler(request))

    def handle_expect_100(self) -> bool:
        """Ask for the body at once: what stays in the buffer costs curl a second of waiting."""
        proceed = super().handle_expect_100()
        self.wfile.flush()
        return proceed

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_any  # noqa: N815

    def _body(self) -> bytes | None:
        """Read the body; None when it is too large to be read."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunked_body()
        length = int(self.headers.get("Content-Length") or 0)
        return None if length > _MAX_BODY_BYTES else self.rfile.read(length)

    def _chunked_body(self) -> bytes | None:
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            if len(body) + size > _MAX_BODY_BYTES:
                return None
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return bytes(body)

    def _refuse(self, status: int, reason: str, message: str) -> None:
        # Where the body ends is unknown, so nothing that follows it can be read.
        self.close_connection = True
        self._answer(google_error(status, reason, message))

    def _answer(self, response: HttpResponse) -> None:
        if response.status == 0:
            self.close_connection = True
            return
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        # An answer to HEAD brings the length of what it does not carry.
        if response.status not in _BODILESS and "Content-Length" not in response.headers:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD" and response.status not in _BODILESS:
            self.wfile.write(response.body)

    def version_string(self) -> str:
        """Name the server in its answers."""
        return "runtender"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay quiet: the cores count, their callers log."""
