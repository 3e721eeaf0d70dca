"""Carries votes from Redis to PostgreSQL."""

import psycopg2
import redis

queue = redis.Redis("redis")
connection = psycopg2.connect("host=db user=postgres password=postgres")
connection.autocommit = True
cursor = connection.cursor()
cursor.execute("CREATE TABLE IF NOT EXISTS votes (vote text NOT NULL)")
while True:
    _, vote = queue.blpop("votes")
    cursor.execute("INSERT INTO votes VALUES (%s)", (vote.decode(),))
