"""Image registries: credentials out of the Docker configuration, and what images in them say of themselves.

Must not know what these images are for.
"""
