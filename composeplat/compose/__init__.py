"""Read Compose files: from text to a typed project, each part with its place in the file.

Owns the whole of Compose's grammar and rules. Must not know Kubernetes, Pulumi, a cluster or a terminal: whatever is
asked of those is decided later, from the model alone.
"""
