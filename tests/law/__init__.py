"""The specification's tables as the project holds them itself, so that a clone without ``../shared`` tests each row."""
