"""The kernel of the verdict: which residual is largest in relation to its bound.

With the residuals r in metres and radians, L the length that a piece is judged by and tol the tolerance, a pose meets
its constraints where  |r|/L ≤ max(tol, rounding of the coordinates)  for lengths, |r| likewise for angles.  On lengths
tol is smaller where L is only how far apart the bodies were drawn.
"""

from math import inf, isfinite, sqrt

from cardan.coordinates.tables import Bounds, Verdict
from cardan.kernel.jit import exact
from cardan.system.tables import POSE


@exact
def judge(residuals, powers, poses, angles, frames, origin, bounds, out):
    """out ← the residual that is largest in relation to its bound, scaled, and that bound.

    A rounded position moves a joint point by an ulp of itself, a rounded orientation by an ulp of its distance from the
    body's origin, a rounded angle of many turns by an ulp of all of them.  Rows of such angles have −k in powers, where
    k ≥ 1 is the factor of an angle in the row.
    """
    limits = Bounds(bounds)
    verdict = Verdict(out)
    tolerance = limits.tolerance
    rounding = limits.rounding
    length = limits.length
    verdict.residual = 0.0
    verdict.bound = tolerance
    far = 0.0
    for i in range(poses.size):
        if not isfinite(poses[i]):
            verdict.residual = inf
            return
        if i % POSE < 3:
            far = max(far, abs(poses[i]))
    stride = POSE * frames.size // max(poses.size, 1)  # 3, or 7 where reference frames have axes of their own
    for i in range(frames.size):
        if i % max(stride, 3) < 3:
            far = max(far, abs(frames[i]))
    for i in range(3):
        far = max(far, abs(origin[i]))
    largest_angle = 1.0
    for i in range(angles.size):
        largest_angle = max(largest_angle, abs(angles[i]))
    largest = 0.0
    for i in range(residuals.size):
        if powers[i] <= 0:
            value = abs(residuals[i])
            bound = max(tolerance, rounding * (max(largest_angle, -powers[i]) if powers[i] < 0 else 1.0))
        else:
            value = abs(residuals[i]) / length
            if powers[i] == 2:
                value /= length
            rounded = max(limits.rounding_least, rounding * far / length)
            if rounded > limits.resolved:
                value = max(value, rounded)
            bound = max(limits.of_lengths, min(rounded, limits.rounding_most))
        if not isfinite(value):
            verdict.residual = inf
            verdict.bound = tolerance
            return
        ratio = value / bound if bound >= tolerance else sqrt(value / bound)  # bounds are squares of tolerances there
        if ratio > largest:
            largest = ratio
            verdict.residual = value
            verdict.bound = bound
