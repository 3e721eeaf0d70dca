"""Notes in PostgreSQL, and in Redis how often they were read."""

import os

import psycopg2
import redis
from flask import Flask, request

app = Flask(__name__)
cache = redis.Redis(os.environ["REDIS_HOST"])


def run(statement: str, *values: str) -> list[tuple[str, ...]]:
    with psycopg2.connect(os.environ["DATABASE_URL"]) as connection, connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


@app.get("/healthz")
def health() -> str:
    run("SELECT 1")
    return "ok\n"


@app.post("/items")
def add() -> str:
    run("INSERT INTO notes (text) VALUES (%s)", request.get_data(as_text=True))
    return "added\n"


@app.get("/items")
def show() -> str:
    cache.incr("reads")
    return "".join(f"{text}\n" for (text,) in run("SELECT text FROM notes ORDER BY id"))


@app.get("/reads")
def reads() -> str:
    return (cache.get("reads") or b"0").decode()


app.run("0.0.0.0", 8000)
