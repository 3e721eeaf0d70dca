"""A machine that is outside: in a network namespace of its own, it resolves every name to its address, and serves HTTP.

Run there as a program, with its address: ``python outside_server.py 203.0.113.2``.
"""

from __future__ import annotations

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"from outside\n"
_IPV4 = b"\0\1"


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def answer(query: bytes, address: str) -> bytes:
    """Answer a question for an IPv4 address; to any other there is no answer."""
    end = query.index(b"\0", 12) + 5
    question, is_ipv4 = query[12:end], query[end - 4 : end - 2] == _IPV4
    counts = bytes((0, 1, 0, int(is_ipv4), 0, 0, 0, 0))
    record = b"\xc0\x0c\0\1\0\1\0\0\0\x05\0\x04" + socket.inet_aton(address)
    return query[:2] + b"\x81\x80" + counts + question + (record if is_ipv4 else b"")


def serve_names(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        while True:
            query, client = server.recvfrom(2048)
            server.sendto(answer(query, address), client)


if __name__ == "__main__":
    threading.Thread(target=serve_names, args=(sys.argv[1],), daemon=True).start()
    ThreadingHTTPServer((sys.argv[1], 80), Page).serve_forever()
