"""Rotations, scalar functions and matrix factorisations, used by all other layers."""
