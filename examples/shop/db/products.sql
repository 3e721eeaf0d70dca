CREATE TABLE IF NOT EXISTS products (name text PRIMARY KEY, ordered integer NOT NULL DEFAULT 0);
INSERT INTO products (name) VALUES ('apple'), ('pear'), ('plum') ON CONFLICT DO NOTHING;
