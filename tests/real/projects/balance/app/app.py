"""A list in Redis, read through memcached; says who answered."""

import os
import socket

import redis
from flask import Flask, Response, request

app = Flask(__name__)
store = redis.Redis("store")


def memory(command: str) -> bytes:
    with socket.create_connection(("memory", 11211), timeout=5) as connection:
        connection.sendall(command.encode())
        return connection.recv(4096)


@app.after_request
def name(response: Response) -> Response:
    response.headers["X-Served-By"] = os.environ["NAME"]
    return response


@app.post("/items")
def add() -> str:
    store.rpush("items", request.get_data())
    memory("delete items\r\n")
    return "added\n"


@app.get("/items")
def show() -> bytes:
    kept = memory("get items\r\n")
    if kept.startswith(b"VALUE"):
        return kept.split(b"\r\n")[1].replace(b"|", b"\n") + b"\n"
    found = b"|".join(store.lrange("items", 0, -1))
    memory(f"set items 0 60 {len(found)}\r\n{found.decode()}\r\n")
    return found.replace(b"|", b"\n") + b"\n"


app.run("0.0.0.0", 8000)
