"""Credentials of registries, and the ports that images expose."""
