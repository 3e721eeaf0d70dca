"""Bad input: never a traceback, a hang or half-written output."""
