"""Rotations and factorisations: the arithmetic under every other layer."""
