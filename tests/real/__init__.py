"""Compose projects of several services with real programs, from the first check to their data after a destroy."""
