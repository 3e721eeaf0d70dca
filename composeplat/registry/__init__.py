"""Image registries: image references, credentials out of the Docker configuration, and the configuration of images.

Must not know what the images are for: plans, builds and local clusters all use this room.
"""
