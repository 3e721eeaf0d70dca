"""Whether a definition runs here as it does with Compose, and the lines that mend it where it does not.

Owns the verdict on each service, and ``compose.platform.yaml``.
Must not read files, registries or clusters: facts come in, and the command line gathers them.
It is apart from :mod:`composeplat.plan` because a plan must not depend on a cluster or on what Compose would do.
"""
