#!/bin/sh
# As root: give the data to the user redis, and run as that user.
set -eu
# Options alone, or a configuration, are the server's.
case "$1" in -* | *.conf) set -- redis-server "$@" ;; esac
if [ "$(id -u)" = 0 ]; then
  chown redis: .
  exec setpriv --reuid=redis --regid=redis --init-groups "$0" "$@"
fi
if [ "$1" = redis-server ]; then set -- "$@" --bind '*' --protected-mode no --dir /data; fi
exec "$@"
