"""A Compose file under plain Pulumi."""
