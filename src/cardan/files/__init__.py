"""Model files: ``*.cardan.toml``, JSON of the same schema, and the import of URDF and MJCF."""
