"""Mutants: the product's code with one token changed, which some test should notice (``make mutants``).

Must not change anything in place: all runs are in a copy of the project.
"""
