#!/bin/sh
# A program that ends: a migration, the setup of a database.
exec standin once
