"""One file of cases for each key, value and ruling."""
