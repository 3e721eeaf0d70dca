#!/bin/sh
# Enough of wget for health checks: the last argument is asked for.
for url; do :; done
exec curl -fsS -o /dev/null "$url"
