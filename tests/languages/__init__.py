"""The components in programs of other languages than Python."""
