"""A plan as text: its objects as YAML or JSON, and its services as a graph.

Must not decide on the content of a plan, nor write files: it returns texts.
"""
