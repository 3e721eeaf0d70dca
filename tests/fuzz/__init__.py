"""Fuzzing: any bytes are read to an end, and nothing but a report comes of what is wrong in them."""
