#!/bin/sh
# `pip install PACKAGE...`: the packages are Debian's already; one that is not there fails.
set -eu
[ "$1" = install ] || { echo "pip: only install" >&2; exit 2; }
shift
for package in "$@"; do
  case "$package" in
    -*) ;;
    *) python3 -c 'import importlib.metadata as m, sys; print(sys.argv[1], m.version(sys.argv[1]))' "$package" ;;
  esac
done
