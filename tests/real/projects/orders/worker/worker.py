"""Puts an order into the queue, and stores the orders that come out of it."""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pika
import psycopg2

QUEUE = pika.ConnectionParameters(
    os.environ["AMQP_HOST"],
    credentials=pika.PlainCredentials(os.environ["AMQP_USER"], os.environ["AMQP_PASSWORD"]),
)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        connection = pika.BlockingConnection(QUEUE)
        channel = connection.channel()
        channel.queue_declare("orders", durable=True)
        channel.basic_publish("", "orders", text, pika.BasicProperties(delivery_mode=2))
        connection.close()
        self.send_response(202)
        self.end_headers()


def store(channel, method, _properties, body: bytes) -> None:
    with psycopg2.connect("") as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders (text) VALUES (%s)", (body.decode(),))
    channel.basic_ack(method.delivery_tag)


threading.Thread(target=ThreadingHTTPServer(("", 9000), Handler).serve_forever, daemon=True).start()
channel = pika.BlockingConnection(QUEUE).channel()
channel.queue_declare("orders", durable=True)
channel.basic_consume("orders", store)
channel.start_consuming()
