"""Promises that hold for any input, tried on many made at random, the same ones each time."""
