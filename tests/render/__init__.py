"""Tests of texts: objects as YAML and JSON, and the graph of services."""
