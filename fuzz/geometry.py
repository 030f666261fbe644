"""Rotations and directions in plain NumPy, from their definitions, independent of the library."""

from __future__ import annotations

import numpy as np

X, Y, Z = np.eye(3)


def unit(v):
    v = np.asarray(v, dtype=float)
    v = v / np.abs(v).max()
    return v / np.sqrt(v @ v)


def matrix(p):
    """Rotation matrix of the quaternion (w, x, y, z), which is normalised first."""
    w, x, y, z = unit(p)
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def quaternion(R):
    """(w, x, y, z): the eigenvector of Bar-Itzhack's symmetric matrix for its largest eigenvalue."""
    (a, b, c), (d, e, f), (g, h, i) = R
    K = np.array(
        [
            [a + e + i, h - f, c - g, d - b],
            [h - f, a - e - i, b + d, c + g],
            [c - g, b + d, e - a - i, f + h],
            [d - b, c + g, f + h, i - a - e],
        ]
    )
    return np.linalg.eigh(K)[1][:, -1]


def rotation(axis, angle):
    """Rotation matrix by Rodrigues' formula."""
    x, y, z = unit(axis)
    tilde = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * tilde + (1 - np.cos(angle)) * tilde @ tilde


def axes(z, x=None):
    """Frame with the given z, and x made orthogonal to it; default x: from (2, z₁², z₁ z₂)."""
    z = unit(z)
    x = np.array([2.0, z[0] ** 2, z[0] * z[1]]) if x is None else unit(x)
    x = unit(x - z * (x @ z))
    x = unit(x - z * (x @ z))
    return np.column_stack([x, cross(z, x), z])


def cross(a, b):
    """a × b; np.cross is ten times slower on single vectors."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def length(v):
    """|v|, without overflow or underflow of the squares."""
    v = np.asarray(v, dtype=float)
    largest = np.abs(v).max(initial=0.0)
    return float(largest * np.sqrt((v / largest) @ (v / largest))) if 0.0 < largest < np.inf else float(largest)


def angle_between(u, v):
    """Angle [rad] in [0, π] between unit vectors, from chords: accurate over the whole range."""
    return float(2 * np.arctan2(length(u - v), length(u + v)))


def rotation_angle(R):
    """Angle [rad] in [0, π] of a rotation matrix, by the chord |R − I| = 2√2 sin(θ/2) and the vector part."""
    sine = 0.5 * length([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return float(np.arctan2(sine, 0.5 * (np.trace(R) - 1.0))) if np.isfinite(R).all() else np.inf


def random_direction(rng):
    return unit(rng.normal(size=3))


def random_rotation(rng):
    return matrix(rng.normal(size=4))


def orthogonal(rng, z):
    """A random direction orthogonal to z."""
    return unit(cross(z, random_direction(rng)))
