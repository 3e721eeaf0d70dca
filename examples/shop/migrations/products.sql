CREATE TABLE IF NOT EXISTS products (
    name text PRIMARY KEY
);
