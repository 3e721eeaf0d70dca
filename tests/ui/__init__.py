"""The page of ``platform ui``, and its server."""
