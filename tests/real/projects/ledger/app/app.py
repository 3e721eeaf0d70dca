"""Entries in PostgreSQL, whose password is in a file."""

import os
from pathlib import Path

import psycopg2
from flask import Flask, request

app = Flask(__name__)
PASSWORD = Path(os.environ["DB_PASSWORD_FILE"]).read_text().strip()


def run(statement: str, *values: str) -> list[tuple[str, ...]]:
    server = {"host": os.environ["DB_HOST"], "user": "ledger", "dbname": "ledger", "password": PASSWORD}
    with psycopg2.connect(**server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS entries (id serial PRIMARY KEY, text text)")
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


@app.get("/healthz")
def health() -> str:
    run("SELECT 1")
    return "ok\n"


@app.post("/items")
def add() -> str:
    run("INSERT INTO entries (text) VALUES (%s)", request.get_data(as_text=True))
    return "added\n"


@app.get("/items")
def show() -> str:
    return "".join(f"{text}\n" for (text,) in run("SELECT text FROM entries ORDER BY id"))


app.run("0.0.0.0", 8000)
