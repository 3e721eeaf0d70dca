#!/bin/sh
exec redis-cli ping
