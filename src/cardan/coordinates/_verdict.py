"""The kernel of the verdict: the largest |residual| / bound over all rows, each in metres or radians.

Reads residuals and coordinates; writes one scaled residual and its bound.
"""

from math import inf, isfinite

from cardan._jit import exact
from cardan.system.layout import POSE


@exact
def judge(residuals, powers, coordinates, counted, points, origin, length, tolerance, rounding, most, out):
    """out ← the residual that is largest relative to its bound, scaled, and that bound.

    Rounding a position moves a joint point by an ulp of the position, rounding an orientation by an ulp of the point's
    distance from the body's origin; a counted angle is rounded by an ulp of its value, whole turns included: rows of
    such angles have −1 in powers.
    """
    out[0] = 0.0
    out[1] = tolerance
    far = 0.0
    for i in range(coordinates.size):
        if not isfinite(coordinates[i]):
            out[0] = inf
            return
        if i % POSE < 3:
            far = max(far, abs(coordinates[i]))
    for i in range(points.size):
        far = max(far, abs(points[i]))
    for i in range(3):
        far = max(far, abs(origin[i]))
    largest_angle = 1.0
    for i in range(counted.size):
        largest_angle = max(largest_angle, abs(counted[i]))
    largest = 0.0
    for i in range(residuals.size):
        if powers[i] <= 0:
            value = abs(residuals[i])
            bound = max(tolerance, rounding * (largest_angle if powers[i] < 0 else 1.0))
        else:
            value = abs(residuals[i]) / length
            if powers[i] == 2:
                value /= length
            bound = max(tolerance, min(rounding * max(1.0, far / length), most))
        if not isfinite(value):
            out[0] = inf
            out[1] = tolerance
            return
        if value / bound > largest:
            largest = value / bound
            out[0] = value
            out[1] = bound
