"""Kernels of primitives, called by their addresses as evaluators call them."""

from __future__ import annotations

from cardan.constraints._calls import call_curvature, call_value
from cardan.kernel.jit import jit


@jit
def value(address, x, c, f, df):
    call_value(address, x, c, f, df)


@jit
def curvature(address, x, v, c, g):
    call_curvature(address, x, v, c, g)
