"""Development containers."""
