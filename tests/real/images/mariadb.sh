#!/bin/sh
# The first start makes the system tables in /var/lib/mysql, the database and its user; later starts use them.
set -eu

data=/var/lib/mysql
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$data" /run/mysqld
  chown -R mysql: "$data" /run/mysqld
  exec setpriv --reuid=mysql --regid=mysql --init-groups "$0" "$@"
fi

root=${MARIADB_ROOT_PASSWORD:-${MYSQL_ROOT_PASSWORD:-}}
database=${MARIADB_DATABASE:-${MYSQL_DATABASE:-}}
user=${MARIADB_USER:-${MYSQL_USER:-}}
password=${MARIADB_PASSWORD:-${MYSQL_PASSWORD:-}}

if [ ! -d "$data/mysql" ]; then
  if [ -n "${MARIADB_RANDOM_ROOT_PASSWORD:-${MYSQL_RANDOM_ROOT_PASSWORD:-}}" ]; then root=$(date +%s%N); fi
  if [ -z "$root" ]; then
    echo "set MARIADB_ROOT_PASSWORD for a new database" >&2
    exit 1
  fi
  mariadb-install-db --datadir="$data" --skip-test-db --auth-root-authentication-method=normal > /dev/null
  {
    echo "FLUSH PRIVILEGES;"
    [ -z "$database" ] || echo "CREATE DATABASE \`$database\`;"
    [ -z "$user" ] || echo "CREATE USER '$user'@'%' IDENTIFIED BY '$password';"
    [ -z "$user" ] || [ -z "$database" ] || echo "GRANT ALL ON \`$database\`.* TO '$user'@'%';"
    echo "CREATE USER root@'%' IDENTIFIED BY '$root';"
    echo "GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"
    echo "ALTER USER root@localhost IDENTIFIED BY '$root';"
  } | mariadbd --bootstrap --datadir="$data" --skip-networking
  echo "the database is made"
fi

exec "$@" --datadir="$data" --bind-address=0.0.0.0
