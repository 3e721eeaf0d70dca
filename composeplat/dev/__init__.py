"""`platform up`: a service as a development container, and the way back.

Owns the twin of a workload, its helper image, and the run of the program that links this machine to the container.
Must not know typer, nor how a definition is read; Pulumi does not know of twins, and its state stays as it is.
"""
