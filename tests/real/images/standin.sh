#!/bin/sh
# Runs the command if the image has such a program, and else the stand-in: commands are arguments of many entry points.
if [ $# -gt 0 ] && command -v "$1" > /dev/null; then exec "$@"; fi
exec standin "$@"
