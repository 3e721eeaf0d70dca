"""Deploying for real: the engine, its providers, and a cluster with pods."""
