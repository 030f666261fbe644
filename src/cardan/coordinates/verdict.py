"""Whether a pose meets every constraint: the one judgement that assembly and diagnosis share.

Every primitive is judged in its sharp form, in metres and radians, and every connected piece by its own extent.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cardan.coordinates import formulations
from cardan.system.state import FloatArray
from cardan.system.system import System

TOLERANCE: Final = 1e-12  # where nobody asks for another: lengths relative to the extent, angles in radians
# Rounding of a pose alone moves a residual by so many ulps of its coordinates: no tolerance below can be asked for.
ROUNDING = 64 * np.finfo(float).eps
ROUNDING_MOST = 1e-6  # where poses cannot be stored better than that, nothing is called assembled


def residuals(system: System, coordinates: FloatArray) -> FloatArray:
    """Of every row in sharp form, unscaled, shape (rows,), with r, p of each body, shape (bodies, 7)."""
    judged = system.judged()
    return formulations.problem(judged, "manifold").residual(formulations.to_reference(judged, coordinates))


def judge(
    piece: System, coordinates: FloatArray, length: float, tolerance: float, known: FloatArray | None = None
) -> tuple[float, float]:
    """The residual of a piece that is largest for what it may be, and that bound; inf where a pose is not finite.

    Only lengths are allowed the rounding of far-away coordinates: an orientation is as sharp there as anywhere.
    """
    if not np.isfinite(coordinates).all():
        return float("inf"), tolerance
    found = residuals(piece, coordinates) if known is None else known
    powers = piece.judged().powers
    bounds = np.array([max(tolerance, ROUNDING), _allowed(piece, coordinates, length, tolerance)])[powers]
    scaled = np.abs(found) * np.array([1.0, 1.0 / length])[powers]
    if not scaled.size:
        return 0.0, tolerance
    if not np.isfinite(scaled).all():
        return float("inf"), tolerance
    worst = int(np.argmax(scaled / bounds))
    return float(scaled[worst]), float(bounds[worst])


def _allowed(piece: System, coordinates: FloatArray, length: float, tolerance: float) -> float:
    """For a length: the tolerance, or what rounding of the poses alone can cause, whichever is more.

    A rounded position moves a joint point by an ulp of itself, a rounded orientation by an ulp of its distance from the
    body's origin.
    """
    largest = float(np.abs(coordinates[:, :3]).max(initial=0.0))
    largest = max(largest, float(np.abs(piece.origin).max()), float(np.abs(piece.centers).max()))
    return max(tolerance, min(ROUNDING * max(1.0, largest / length), ROUNDING_MOST))
