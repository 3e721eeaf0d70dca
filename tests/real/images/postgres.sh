#!/bin/sh
# The first start makes a database cluster in PGDATA, which must be empty; later starts use it.
set -eu

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /run/postgresql
  chmod 0700 "$PGDATA"
  chown -R postgres: "$PGDATA" /run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE"); fi
  if [ -z "${POSTGRES_PASSWORD:-}" ]; then
    echo "set POSTGRES_PASSWORD for a new database" >&2
    exit 1
  fi
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username="$user" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256
  rm /tmp/password
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait --silent start -o "-c listen_addresses="
  [ "$database" = postgres ] || createdb --username="$user" "$database"
  for script in /docker-entrypoint-initdb.d/*.sql; do
    [ ! -e "$script" ] || psql -v ON_ERROR_STOP=1 --username="$user" --dbname="$database" --file="$script"
  done
  pg_ctl --wait --silent stop
  echo "the database is made"
fi

if [ "$1" = postgres ]; then set -- "$@" -c "listen_addresses=*"; fi
exec "$@"
