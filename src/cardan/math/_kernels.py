"""Scalar functions for primitives and formulations.  Where a function is undefined, a fixed value is returned."""

from math import atan2, pi, sin, sqrt

from numpy import floor  # that of math does not accept NaN

from cardan.kernel.jit import inner

SERIES_BELOW = 1e-2  # of t = (n/w)²: the error after eight terms of the series is t⁸ ≈ 1e-16
TURN = 2.0 * pi
TWO_TERMS_BELOW = 1e-4  # of a [rad]: the third term of sin(½a)/a, a⁴/3840, is below 1e-19


@inner
def norm3(x, y, z):
    """|d| = √(d·d); its gradient is unit3."""
    return sqrt(x * x + y * y + z * z)


@inner
def unit3(k, x, y, z):
    """Component k of d/|d|; at d = 0 the fixed direction (1, 0, 0), so that a solver can leave the point."""
    n = sqrt(x * x + y * y + z * z)
    if n == 0.0:
        return 1.0 if k == 0 else 0.0
    if k == 0:
        return x / n
    if k == 1:
        return y / n
    return z / n


@inner
def inverse_norm3(x, y, z):
    """1/|d|, and 0 at d = 0, where unit3 is constant."""
    n = sqrt(x * x + y * y + z * z)
    return 1.0 / n if n > 0.0 else 0.0


@inner
def sign4(w, x, y, z):
    """Sign of the first non-zero component.  It selects one of ±(w, x, y, z), also for w = 0 (rotation by π)."""
    if w != 0.0:
        return 1.0 if w > 0.0 else -1.0
    if x != 0.0:
        return 1.0 if x > 0.0 else -1.0
    if y != 0.0:
        return 1.0 if y > 0.0 else -1.0
    return 1.0 if z >= 0.0 else -1.0


@inner
def angle_ratio(s, w):
    """h(s, w) = 2 atan2(√s, w)/√s for w ≥ 0: rotation vector = h(v·v, w) v.  Series 2/w Σ (−t)ᵏ/(2k+1), t = s/w²."""
    if s <= SERIES_BELOW * w * w:
        t = s / (w * w)
        tail = 1 / 7 - t * (1 / 9 - t * (1 / 11 - t * (1 / 13 - t * (1 / 15 - t / 17))))
        return 2.0 / w * (1.0 - t * (1 / 3 - t * (1 / 5 - t * tail)))
    n = sqrt(s)
    return 2.0 * atan2(n, w) / n


@inner
def angle_ratio_s(s, w):
    """∂h/∂s = (w/(s + w²) − h/2)/s."""
    if s <= SERIES_BELOW * w * w:
        t = s / (w * w)
        tail = 4 / 9 - t * (5 / 11 - t * (6 / 13 - t * (7 / 15 - t * (8 / 17 - t * 9 / 19))))
        return 2.0 / (w * w * w) * (-1 / 3 + t * (2 / 5 - t * (3 / 7 - t * tail)))
    return (w / (s + w * w) - 0.5 * angle_ratio(s, w)) / s


@inner
def angle_ratio_ss(s, w):
    """∂²h/∂s² = −(w/(s + w²)² + 3/2 ∂h/∂s)/s."""
    if s <= SERIES_BELOW * w * w:
        t = s / (w * w)
        tail = 20 / 11 - t * (30 / 13 - t * (42 / 15 - t * (56 / 17 - t * (72 / 19 - t * 90 / 21))))
        return 2.0 / (w * w * w * w * w) * (2 / 5 - t * (6 / 7 - t * (12 / 9 - t * tail)))
    r = s + w * w
    return -(w / (r * r) + 1.5 * angle_ratio_s(s, w)) / s


@inner
def half_sine_ratio(a):
    """sin(½a)/a for a ≥ 0: exp(δθ/2) = (cos ½a, sin(½a)/a δθ) with a = |δθ|.  Series ½ − a²/48."""
    return sin(0.5 * a) / a if a > TWO_TERMS_BELOW else 0.5 - a * a / 48.0


@inner
def unwrapped(s, c, near):
    """Angle [rad] whose sine and cosine are proportional to s and c, within π of ``near``; near if both are zero."""
    if s == 0.0 and c == 0.0:
        return near
    angle = atan2(s, c)
    return angle + TURN * floor((near - angle) / TURN + 0.5)


@inner
def inverse_square2(s, c):
    """1/(s² + c²), and 0 at the origin, where the angle has no gradient."""
    n = s * s + c * c
    return 1.0 / n if n > 0.0 else 0.0


@inner
def beyond(a, lower, upper):
    """Signed excess of a over [lower, upper]: a − upper, a − lower, or zero within; NaN for NaN."""
    if a > upper:
        return a - upper
    if a < lower:
        return a - lower
    return a - a


@inner
def outside(a, lower, upper):
    """Derivative of beyond: 1 outside, 0 within and on the bounds."""
    return 1.0 if a > upper or a < lower else 0.0


@inner
def power(a, n):
    """aⁿ for a constant n; a may be negative if n is an integer."""
    return a**n
