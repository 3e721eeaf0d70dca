"""Puts a vote into Redis, from where the worker takes it."""

import redis
from flask import Flask, request

app = Flask(__name__)


@app.get("/")
def page() -> str:
    return "vote\n"


@app.post("/items")
def vote() -> str:
    redis.Redis("redis").rpush("votes", request.get_data())
    return "voted\n"


app.run("0.0.0.0", 80)
