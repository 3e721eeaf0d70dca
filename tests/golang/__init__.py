"""The programs of this project that are written in Go."""
