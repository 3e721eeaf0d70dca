// Hands new orders to the worker, and reads those that are stored.
const express = require("express");
const { Pool } = require("pg");

const pool = new Pool();
const app = express();

app.post("/items", express.text({ type: "*/*" }), async (request, response) => {
  const answer = await fetch(process.env.WORKER, { method: "POST", body: request.body });
  response.status(answer.status).send("queued\n");
});

app.get("/items", async (_, response) => {
  const { rows } = await pool.query("SELECT text FROM orders ORDER BY id");
  response.type("text/plain").send(rows.map((row) => row.text + "\n").join(""));
});

app.listen(process.env.PORT);
