"""Writes to the leader and reads from the follower."""

import redis
from flask import Flask, request

app = Flask(__name__)
leader, follower = redis.Redis("leader"), redis.Redis("follower")


@app.post("/items")
def add() -> str:
    leader.rpush("items", request.get_data())
    leader.wait(1, 5000)
    return "added\n"


@app.get("/items")
def show() -> bytes:
    return b"".join(item + b"\n" for item in follower.lrange("items", 0, -1))


app.run("0.0.0.0", 8000)
