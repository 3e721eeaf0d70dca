"""Keeps a list in Redis."""

import redis
from flask import Flask, request

app = Flask(__name__)
cache = redis.Redis(host="redis", port=6379)


@app.post("/items")
def add() -> str:
    cache.rpush("items", request.get_data())
    return "added\n"


@app.get("/items")
def show() -> bytes:
    return b"".join(item + b"\n" for item in cache.lrange("items", 0, -1))
