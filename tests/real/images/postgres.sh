#!/bin/sh
# The first start makes a database cluster in PGDATA, which must be empty; later starts use it.
set -eu

case "$1" in -*) set -- postgres "$@" ;; esac
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /run/postgresql
  chmod 0700 "$PGDATA"
  chown -R postgres: "$PGDATA" /run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE"); fi
  method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$method" != trust ]; then
    echo "set POSTGRES_PASSWORD for a new database" >&2
    exit 1
  fi
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  printf '%s\n' "${POSTGRES_PASSWORD:-unused}" > /tmp/password
  # shellcheck disable=SC2086
  initdb --username="$user" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 \
    ${POSTGRES_INITDB_ARGS:-}
  rm /tmp/password
  echo "host all all all $method" >> "$PGDATA/pg_hba.conf"
  # Variables for clients, as some projects give them to the server too, must not lead elsewhere.
  unset PGHOST PGHOSTADDR PGDATABASE PGUSER
  pg_ctl --wait --silent start -o "-c listen_addresses="
  [ "$database" = postgres ] || createdb --username="$user" "$database"
  for script in /docker-entrypoint-initdb.d/*.sql; do
    [ ! -e "$script" ] || psql -v ON_ERROR_STOP=1 --username="$user" --dbname="$database" --file="$script"
  done
  for script in /docker-entrypoint-initdb.d/*.sh; do
    if [ -x "$script" ]; then "$script"; elif [ -e "$script" ]; then . "$script"; fi
  done
  pg_ctl --wait --silent stop
  echo "the database is made"
fi

if [ "$1" = postgres ]; then set -- "$@" -c "listen_addresses=*"; fi
exec "$@"
