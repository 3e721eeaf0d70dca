"""A shop's API with the standard library alone: products, and whether the database can be reached."""

from __future__ import annotations

import json
import os
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 8000
PRODUCTS = ["apples", "bread", "cheese"]


def database_answers() -> bool:
    address = (os.environ.get("DATABASE_HOST", "db"), int(os.environ.get("DATABASE_PORT", "5432")))
    try:
        with socket.create_connection(address, timeout=1):
            return True
    except OSError:
        return False


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        match self.path:
            case "/api/health":
                answers = database_answers()
                self.answer(200 if answers else 503, {"database": answers})
            case "/api/products":
                self.answer(200, {"greeting": os.environ.get("GREETING", "Welcome"), "products": PRODUCTS})
            case _:
                self.answer(404, {"error": "no such page"})

    def answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("", PORT), Shop).serve_forever()
