"""`platform up`: a service as a development container, and the way back.

Owns the dev workload that replaces a service's own, its helper image, and the program that links this machine to the
container.
Must not know typer, nor how a definition is read. Pulumi does not know dev workloads: its state stays as it is.
"""
