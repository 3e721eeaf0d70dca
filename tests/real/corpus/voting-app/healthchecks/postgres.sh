#!/bin/sh
exec pg_isready -U postgres
