"""Where the programs come from that this project drives: Pulumi, its providers, BuildKit, Kubernetes.

Owns finding a program in a fitting version, or making it from pinned sources, once, for every checkout of a user.
Must not know what the programs are used for.

A program is looked for on PATH, then in the cache, and else built from the Go modules in ``modules/``, our own and
others' in pinned versions, with the machine's Go or one from the Python registry.
"""
