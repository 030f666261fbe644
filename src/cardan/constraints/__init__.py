"""Primitive constraints: f, ∂f/∂features and γ, and their registry."""

from cardan.constraints import primitives as primitives  # registers the built-in primitives
