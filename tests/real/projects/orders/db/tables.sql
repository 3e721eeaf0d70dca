CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, text text NOT NULL);
