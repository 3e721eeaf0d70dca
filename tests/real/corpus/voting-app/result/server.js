// Shows the votes that the worker has stored.
const express = require("express");
const { Pool } = require("pg");

const pool = new Pool({ host: "db", user: "postgres", password: "postgres" });
const app = express();

app.get("/items", async (_, response) => {
  try {
    const { rows } = await pool.query("SELECT vote FROM votes");
    response.type("text/plain").send(rows.map((row) => row.vote + "\n").join(""));
  } catch (error) {
    response.status(503).send(String(error));
  }
});

app.listen(80);
