"""Kernels of vectors of three numbers and of rotation matrices, row by row."""

from cardan.kernel.jit import inner


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def cross(a, b, out):
    x = a[1] * b[2] - a[2] * b[1]
    y = a[2] * b[0] - a[0] * b[2]
    z = a[0] * b[1] - a[1] * b[0]
    out[0] = x
    out[1] = y
    out[2] = z


@inner
def rotation(p, out):
    """out ← A(p)/|p|², row by row; returns |p|²."""
    square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    f = 2.0 / square
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        out[4 * i] = f * (p[0] * p[0] + p[1 + i] * p[1 + i]) - 1.0
        out[3 * k + j] = f * (p[1 + j] * p[1 + k] + p[0] * p[1 + i])
        out[3 * j + k] = f * (p[1 + j] * p[1 + k] - p[0] * p[1 + i])
    return square


@inner
def apply(R, v, out):
    """out ← R v."""
    x = v[0]
    y = v[1]
    z = v[2]
    for i in range(3):
        out[i] = R[3 * i] * x + R[3 * i + 1] * y + R[3 * i + 2] * z


@inner
def apply_back(R, v, out):
    """out ← Rᵀ v."""
    x = v[0]
    y = v[1]
    z = v[2]
    for i in range(3):
        out[i] = R[i] * x + R[3 + i] * y + R[6 + i] * z
