"""Driving Pulumi."""
