"""The promises between versions."""
