"""Stores lines in the database whose password is a secret."""

from pathlib import Path

import psycopg2
from flask import Flask, request

app = Flask(__name__)


def run(statement: str, *values: str) -> list[tuple[str, ...]]:
    password = Path("/run/secrets/db-password").read_text()
    connection = psycopg2.connect(host="db", user="postgres", password=password, dbname="example")
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS lines (id serial PRIMARY KEY, text text)")
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


@app.post("/items")
def add() -> str:
    run("INSERT INTO lines (text) VALUES (%s)", request.get_data(as_text=True))
    return "added\n"


@app.get("/items")
def show() -> str:
    return "".join(f"{text}\n" for (text,) in run("SELECT text FROM lines ORDER BY id"))


app.run("0.0.0.0", 8000)
