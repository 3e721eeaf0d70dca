#!/bin/sh
# The first start makes the user; data lie under /var/lib/rabbitmq/mnesia by the name of the node.
set -eu
if [ "$(id -u)" = 0 ]; then
  mkdir -p /var/lib/rabbitmq /var/log/rabbitmq
  chown -R rabbitmq: /var/lib/rabbitmq /var/log/rabbitmq
  exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "$0" "$@"
fi
export HOME=/var/lib/rabbitmq
{
  echo "loopback_users = none"
  echo "log.console = true"
  [ -z "${RABBITMQ_DEFAULT_USER:-}" ] || echo "default_user = $RABBITMQ_DEFAULT_USER"
  [ -z "${RABBITMQ_DEFAULT_PASS:-}" ] || echo "default_pass = $RABBITMQ_DEFAULT_PASS"
} > /tmp/rabbitmq.conf
export RABBITMQ_CONFIG_FILE=/tmp/rabbitmq.conf
exec "$@"
