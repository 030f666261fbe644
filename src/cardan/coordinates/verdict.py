"""Whether a pose meets every constraint: the one judgement that assembly and diagnosis share.

Every primitive is judged in its sharp form, in metres and radians, and every connected piece by its own extent.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.lazy import TieredModule
from cardan.system import check
from cardan.system.state import FloatArray
from cardan.system.system import System

_verdict = TieredModule("cardan.coordinates._verdict")

TOLERANCE: Final = 1e-12  # where nobody asks for another: lengths relative to the extent, angles in radians
# Rounding of a pose alone moves a residual by so many ulps of its coordinates: no tolerance below can be asked for.
ROUNDING = 64 * float(np.finfo(float).eps)
ROUNDING_MOST = 1e-6  # where poses cannot be stored better than that, nothing is called assembled


def checked_tolerance(value: Any) -> float:
    """A tolerance that can be asked for."""
    tolerance = check.positive(value, "tolerance")
    if tolerance >= 1.0:
        raise ModelError(f"tolerance is {tolerance}; it must be below 1 (lengths are relative to the extent)")
    return tolerance


def residuals(
    system: System, coordinates: FloatArray, near: FloatArray | None = None, time: float = 0.0
) -> FloatArray:
    """Of every row in sharp form, unscaled, shape (rows,), with r, p of each body, shape (bodies, 7).

    near [rad], shape (turns,): angles that whole turns are counted from.  time [s]: of the drivers.
    """
    judged = system.judged()
    problem = formulations.problem(judged, "manifold", None, time)
    return problem.residual(formulations.to_reference(judged, coordinates, near))


def judge(
    piece: System,
    coordinates: FloatArray,
    length: float,
    tolerance: float,
    known: FloatArray | None = None,
    near: FloatArray | None = None,
    time: float = 0.0,
) -> tuple[float, float]:
    """The residual of a piece that is largest for what it may be, and that bound; inf where a pose is not finite.

    Only lengths are allowed the rounding of far-away coordinates: an orientation is as sharp there as anywhere.
    known: the residuals, where they have been computed already.
    """
    found = residuals(piece, coordinates, near, time) if known is None else known
    out = np.empty(2)
    _verdict.judge(
        found,
        piece.judged_powers(),
        np.array(coordinates).reshape(-1),
        _NONE if near is None else near,
        piece.reference_points.reshape(-1),
        piece.origin,
        length,
        tolerance,
        ROUNDING,
        ROUNDING_MOST,
        out,
    )
    return float(out[0]), float(out[1])


_NONE: FloatArray = np.empty(0)
