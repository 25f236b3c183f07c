"""HTTPS for an API whose answers may go on: a watch is written as its changes come, until its client hangs up.

The services whose answers end are served by `local.http`; this is the one that streams.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from runtender.local.http import HttpRequest, HttpResponse, LocalAuthority
from runtender.local.http.accepting import Accepting
from runtender.local.http.server import thread_name
from runtender.local.kubernetes.streams import Stream

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Open = Callable[[HttpRequest], HttpResponse | Stream]
Poll = Callable[[Stream], bytes]

# How often a stream is asked for what is new, and a closing server looks whether all have ended.
_POLL_S = 0.02
# How long a closing server waits for its streams to end.
_CLOSE_WAIT_S = 5.0


class _Exchange(WSGIRequestHandler):
    """One connection. The core counts its calls; a line per request would say it twice."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def connection_dropped(self, error: BaseException, environ: WSGIEnvironment | None = None) -> None:
        """Break the connection: without an answer the client would wait for one."""
        del error, environ
        self.close_connection = True


class _Server(ThreadedWSGIServer):
    """A thread per connection, which bears the server's name."""

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        threading.current_thread().name = thread_name(self.port)
        super().process_request_thread(request, client_address)


class StreamingServer:
    """An API behind one HTTPS port on the loopback address, until `close`. `open` answers, `poll` goes on answering."""

    def __init__(self, open: Open, poll: Poll, authority: LocalAuthority) -> None:  # noqa: A002
        self._open = open
        self._poll = poll
        self._closed = threading.Event()
        self._streams: set[int] = set()
        self._server = _Server("127.0.0.1", 0, self._respond, _Exchange)
        # The handshake waits for the connection's own thread, so that a slow client holds up nobody.
        context = authority.server_context()
        self._server.ssl_context = context
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.port = self._server.port
        self._accepting = Accepting(self._server, thread_name(self.port))

    def close(self) -> None:
        """Stop accepting and end every stream. May be called twice."""
        self._closed.set()
        self._accepting.close()
        waited = threading.Event()
        for _ in range(int(_CLOSE_WAIT_S / _POLL_S)):
            if not self._streams:
                return
            waited.wait(_POLL_S)

    def _respond(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
        answer = self._open(_request(environ))
        if isinstance(answer, HttpResponse):
            yield from _whole(answer, start_response)
        else:
            start_response("200 OK", list(answer.headers.items()))
            # Nothing, but it sends the headers: a client waits for them before it waits for changes.
            yield b""
            yield from self._follow(answer, environ["werkzeug.socket"])

    def _follow(self, stream: Stream, client: socket.socket) -> Iterator[bytes]:
        self._streams.add(id(stream))
        try:
            while not self._closed.is_set():
                if text := self._poll(stream):
                    yield text
                # A client that has sent its request says nothing more, so what can be read is the end.
                if stream.over or select.select([client], [], [], _POLL_S)[0]:
                    return
        finally:
            self._streams.discard(id(stream))


def _whole(answer: HttpResponse, start_response: StartResponse) -> Iterator[bytes]:
    if answer.status == 0:
        # The transport takes this for a client that has gone, and breaks the connection.
        raise ConnectionAbortedError("the connection breaks before an answer")
    headers = {"Content-Length": str(len(answer.body)), **answer.headers}
    start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", list(headers.items()))
    yield answer.body


def _request(environ: WSGIEnvironment) -> HttpRequest:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    chunked = environ.get("wsgi.input_terminated", False)
    headers = {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or name in {"CONTENT_TYPE", "CONTENT_LENGTH"}
    }
    body = environ["wsgi.input"].read() if chunked else environ["wsgi.input"].read(length) if length else b""
    return HttpRequest.to_url(environ["REQUEST_METHOD"], environ["REQUEST_URI"], headers=headers, body=body)
