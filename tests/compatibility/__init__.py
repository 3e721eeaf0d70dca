"""Whether a definition runs as with Compose, and what mends it."""
