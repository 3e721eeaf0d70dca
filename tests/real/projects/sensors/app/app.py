"""Publishes what it is sent, and stores what the broker delivers."""

import os
import time

import paho.mqtt.client as mqtt
import psycopg2
from flask import Flask, request

app = Flask(__name__)


def run(statement: str, *values: str) -> list[tuple[str, ...]]:
    with psycopg2.connect("") as connection, connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def store(_client, _data, message) -> None:
    run("INSERT INTO readings (text) VALUES (%s)", message.payload.decode())


@app.post("/items")
def add() -> str:
    client.publish("readings", request.get_data(), qos=1).wait_for_publish()
    return "published\n"


@app.get("/items")
def show() -> str:
    return "".join(f"{text}\n" for (text,) in run("SELECT text FROM readings ORDER BY id"))


while True:
    try:
        run("CREATE TABLE IF NOT EXISTS readings (id serial PRIMARY KEY, text text NOT NULL)")
        break
    except psycopg2.OperationalError:
        time.sleep(0.5)
client = mqtt.Client()
client.on_message = store
client.on_connect = lambda *_: client.subscribe("readings", qos=1)
client.connect_async(os.environ["BROKER"])
client.loop_start()
app.run("0.0.0.0", 5000)
