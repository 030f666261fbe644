"""Model files: ``*.cardan.toml``, JSON of the same schema, and URDF and MJCF in."""
