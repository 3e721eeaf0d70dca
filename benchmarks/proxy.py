"""A proxy of the API server on loopback, which makes a wire slower and counts the bytes of clients.

Owns the delay and the rate, in both directions. It passes encrypted bytes on, and must not know of requests.
"""

from __future__ import annotations

import math
import queue
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

DELAY = 0.05
"""In seconds, there and back."""
SLOW_RATE = 2_500_000
"""Bytes in a second: 20 megabits, as many have to the outside."""
UNDER_WAY = 64
"""Chunks of at most 64 KiB on the wire at once."""


class Proxy:
    """Adds half of a delay each way, and can limit the rate."""

    def __init__(self, port: int, delay: float = 0.0, rate: float = math.inf) -> None:
        self.sent = 0
        """Bytes of the clients."""
        self._server_port, self._delay, self._rate = port, delay, rate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def write_kubeconfig(self, folder: Path, variables: Mapping[str, str]) -> Path:
        """Write the kubeconfig of a program with these variables once more, with the address of this proxy."""
        path = folder / f"kubeconfig-{self.port}"
        text = Path(variables["KUBECONFIG"]).read_text()
        path.write_text(text.replace(f":{self._server_port}", f":{self.port}"))
        return path

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._server_port))
            for source, target in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                under_way: queue.Queue[tuple[float, bytes]] = queue.Queue(UNDER_WAY)
                counts = source is near
                threading.Thread(target=self._read, args=(source, under_way, counts), daemon=True).start()
                threading.Thread(target=self._write, args=(target, under_way), daemon=True).start()

    def _read(self, source: socket.socket, under_way: queue.Queue[tuple[float, bytes]], counts: object) -> None:
        content = b"-"
        while content:
            try:
                content = source.recv(1 << 16)
            except OSError:
                content = b""
            self.sent += len(content) if counts else 0
            under_way.put((time.monotonic() + self._delay / 2, content))

    def _write(self, target: socket.socket, under_way: queue.Queue[tuple[float, bytes]]) -> None:
        while True:
            due, content = under_way.get()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not content:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(content)
            except OSError:
                return
            time.sleep(len(content) / self._rate)
