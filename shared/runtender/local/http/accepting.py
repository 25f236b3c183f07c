"""The thread that takes a server's connections. It sleeps while nobody connects, and ends as soon as it is told to."""

from __future__ import annotations

import selectors
import socket
import threading
from socketserver import TCPServer


class Accepting:
    """Runs a server from now on, until `close`."""

    def __init__(self, server: TCPServer, name: str) -> None:
        """Take the connections of `server` in a thread of this name."""
        self._server = server
        # To hang up on one end is heard at the other: no need to look for it several times a second.
        self._ours, self._theirs = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, daemon=True, name=name)
        self._thread.start()

    def close(self) -> None:
        """Take no more connections; those that are open stay. May be called twice."""
        self._ours.close()
        self._thread.join()
        self._theirs.close()
        self._server.server_close()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._theirs, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._theirs in ready:
                    return
                self._server.handle_request()
