"""The shop's API: products and orders in PostgreSQL, visits in Redis."""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import redis

CACHE = redis.Redis(os.environ["CACHE"])


def run(statement: str, *values: str) -> list[tuple]:
    with psycopg2.connect(os.environ["DATABASE_URL"]) as connection, connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def shop() -> dict:
    ((version,),) = run("SHOW server_version")
    return {
        "greeting": os.environ["GREETING"],
        "products": [{"name": name, "ordered": count} for name, count in run("SELECT * FROM products ORDER BY name")],
        "visits": CACHE.incr("visits"),
        "servers": [f"PostgreSQL {version.split()[0]}", f"Redis {CACHE.info('server')['redis_version']}"],
    }


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/api/health":
            self.answer(200, run("SELECT 1"))
        elif self.path == "/api/shop":
            self.answer(200, shop())
        else:
            self.answer(404, {"error": "there is GET /api/shop and POST /api/orders/PRODUCT"})

    def do_POST(self) -> None:
        product = self.path.removeprefix("/api/orders/")
        changed = run("UPDATE products SET ordered = ordered + 1 WHERE name = %s RETURNING ordered", product)
        self.answer(200 if changed else 404, {"product": product, "ordered": changed[0][0] if changed else None})

    def answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# The first process of a container ignores SIGTERM unless it has a handler, and would be killed after ten seconds.
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
ThreadingHTTPServer(("", 8000), Handler).serve_forever()
