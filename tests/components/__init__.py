"""Pulumi's resources of a plan."""
