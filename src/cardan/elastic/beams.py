"""Straight uniform beams: shapes, stiffness and mass as a body with elastic coordinates, and closed forms.

The body frame is at the end x = 0, tangent to the axis of the beam, which is along x.  With the elastic coordinates η
the stretch is s(x), the lateral displacements are v(x) and w(x) and the twist is φ(x), each linear in η.  A point of
the axis is at

    (x + s − ½ ∫₀ˣ (v′² + w′²) dx,  v,  w),

exact to second order: bending makes the axis no longer, so the ends approach each other.  This term alone contains the
stiffening of a rotating beam and the buckling of a compressed one. [Kane1987]  A section turns by the rotation vector
(φ, −w′, v′), and stays plane and normal to the axis (Euler, Bernoulli).  The energy is

    ½ ∫ E A s′² + E I_z v″² + E I_y w″² + G J φ′² dx = ½ ηᵀ K η.

The shapes span the polynomials of the least degrees that a clamp at x = 0 allows (x², x³, … for bending, x, x², … for
stretch and twist), so that loads at the end, uniform loads and moments bend the beam exactly; they are the modes of
vibration within these polynomials, so K and M are diagonal.  The integrals are those of Gauss and Legendre, exact here.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.polynomial.legendre import Legendre, leggauss
from numpy.typing import NDArray

from cardan.elastic.modes import Local, MassPoints, Modes, checked_damping
from cardan.errors import ModelError
from cardan.system import check

FloatArray = NDArray[np.float64]

MOST: Final = 10  # shapes of one kind: with more, rounding of the polynomials shows
POISSON: Final = 0.3  # where no stiffness of twisting is given
BEYOND: Final = 1e-9  # of the length: how far beyond its ends a place may be
BENDING_Y, BENDING_Z, STRETCH, TWIST = range(4)
WORDS: Final = ("bending_y", "bending_z", "stretch", "twist")
ORDERS: Final = (2, 2, 1, 1)  # the least degree of the polynomials


def beam(
    length: Any,
    *,
    area: Any,
    second_moments: Any,
    young: Any,
    density: Any,
    twisting: Any = None,
    bending: Any = 3,
    stretch: Any = 1,
    twist: Any = 0,
    damping: Any = 0.0,
) -> Modes:
    """The modes of a straight uniform beam along x of a body; see :mod:`cardan.elastic.beams`.

    It reaches from x = 0 to ``length`` [m].  area [m²]; second_moments [m⁴]: (I_y, I_z) of the
    section, or one number for both; young [Pa], density [kg/m³]; twisting [N m²]: the
    stiffness G J; young (I_y + I_z) / 2.6 if not given, that of a round section with the Poisson ratio 0.3.
    bending: number of shapes along y and along z, or (along y, along z).  stretch, twist: numbers of shapes.
    damping: the ratio of every mode.
    """
    L, A = check.positive(length, "the length of a beam"), check.positive(area, "the area of a beam")
    E, rho = check.positive(young, "young of a beam"), check.positive(density, "the density of a beam")
    one = isinstance(second_moments, int | float) and not isinstance(second_moments, bool)
    pair = (second_moments, second_moments) if one else second_moments
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ModelError(f"second_moments of a beam are {second_moments!r}; give (I_y, I_z), or one number for both")
    I_y, I_z = (check.positive(value, "a second moment of a beam") for value in pair)
    round_one = E * (I_y + I_z) / (2.0 * (1.0 + POISSON))
    GJ = round_one if twisting is None else check.positive(twisting, "the stiffness twisting of a beam")
    counts = _counts(bending, stretch, twist)
    ratio = check.positive(damping, "the damping ratio of a beam", zero=True)
    return _beam(L, A, I_y, I_z, E, rho, GJ, counts, ratio)


def _beam(
    L: float, A: float, I_y: float, I_z: float, E: float, rho: float, GJ: float, counts: tuple[int, ...], ratio: float
) -> Modes:
    """The modes of checked numbers."""
    stiffness = (E * I_z, E * I_y, E * A, GJ)
    inertias = (rho * A, rho * A, rho * A, rho * (I_y + I_z))
    bases = [_modes(L, n, order, *of) for n, order, *of in zip(counts, ORDERS, stiffness, inertias, strict=True)]
    n = sum(counts)
    firsts = np.concatenate([[0], np.cumsum(counts)])[:4]

    def fields(x: FloatArray) -> FloatArray:
        """Values and slopes of v, w, s, φ at x, shape (2, 4, points, n)."""
        found = np.zeros((2, 4, x.size, n))
        for family, (first, count) in enumerate(zip(firsts, counts, strict=True)):
            values = _polynomials(L, count, ORDERS[family], x)
            found[:, family, :, first : first + count] = np.swapaxes(values[:2], 1, 2) @ bases[family][1]
        return found

    def deformation(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Φ, (k, 3, n), H, (k, 3, n, n), Ψ, (k, 3, n), of points on the axis."""
        value, slope = fields(x)
        phi = np.stack([value[STRETCH], value[BENDING_Y], value[BENDING_Z]], axis=1)
        psi = np.stack([value[TWIST], -slope[BENDING_Z], slope[BENDING_Y]], axis=1)
        H = np.zeros((x.size, 3, n, n))
        nodes, weights = leggauss(max(counts) + 2)
        for k, end in enumerate(x):
            _, inner = fields(0.5 * end * (nodes + 1.0))
            for family in (BENDING_Y, BENDING_Z):
                H[k, 0] -= 0.5 * end * np.einsum("p,pn,pm->nm", weights, inner[family], inner[family])
        return phi, H, psi

    def local(place: FloatArray) -> Local:
        if not -BEYOND * L <= place[0] <= (1.0 + BEYOND) * L:
            raise ModelError(
                f"a place on a beam is at x = {place[0]:g} m; it must be between 0 and its length, {L:g} m"
            )
        phi, H, psi = (one[0] for one in deformation(place[:1]))
        aside = np.array([0.0, place[1], place[2]])
        if not aside.any():
            return Local(phi, H, psi)
        turned = np.cross(psi.T, aside).T  # of the section: θ × a + ½ θ × (θ × a), a across the axis
        both = np.einsum("in,jm->ijnm", psi, psi)
        square = np.einsum("ijnm,j->inm", both, aside) - np.einsum("jjnm,i->inm", both, aside)
        return Local(phi + turned, H + 0.5 * (square + np.swapaxes(square, 1, 2)), psi)

    nodes, weights = leggauss(2 * max(counts) + 4)
    x, dx = 0.5 * L * (nodes + 1.0), 0.5 * L * weights
    phi, H, psi = deformation(x)
    places = np.column_stack([x, 0.0 * x, 0.0 * x])
    axes = np.tile([1.0, 0.0, 0.0], (x.size, 1))
    points = MassPoints(rho * A * dx, places, phi, H, rho * (I_y + I_z) * dx, axes, psi)
    squares = np.concatenate([values for values, _ in bases])
    K = np.diag(squares)
    names = tuple(f"{word}_{k + 1}" for word, count in zip(WORDS, counts, strict=True) for k in range(count))
    D = checked_damping(ratio, K, np.eye(n))
    return Modes(names, K, D, points, local, (_beam, (L, A, I_y, I_z, E, rho, GJ, counts, ratio)))


def _counts(bending: Any, stretch: Any, twist: Any) -> tuple[int, ...]:
    pair = tuple(bending) if isinstance(bending, tuple | list) else (bending, bending)
    if len(pair) != 2:
        raise ModelError(f"bending of a beam is {bending!r}; give a number of shapes, or (along y, along z)")
    found = tuple(
        check.count(one, f"{word} of a beam", 0) for word, one in zip(WORDS, (*pair, stretch, twist), strict=True)
    )
    if max(found) > MOST or not any(found):
        raise ModelError(f"a beam was given {found} shapes for {WORDS}; at least one, and at most {MOST} of each")
    return found


def _polynomials(length: float, count: int, order: int, x: FloatArray) -> FloatArray:
    """x^order P_k(2x/ℓ − 1), k < count, relative to ℓ, and two derivatives by x/ℓ, shape (3, count, points)."""
    at = np.asarray(x, dtype=np.float64) / length
    found = np.empty((3, count, at.size))
    p0, p1 = at**order, order * at ** (order - 1)
    p2 = order * (order - 1) * at ** max(order - 2, 0)
    for k in range(count):
        P = Legendre.basis(k, domain=[0.0, 1.0])
        P0, P1, P2 = P(at), P.deriv(1)(at), P.deriv(2)(at)
        found[:, k] = p0 * P0, p1 * P0 + p0 * P1, p2 * P0 + 2.0 * p1 * P1 + p0 * P2
    found[0] *= length
    found[2] /= length
    return found


def _modes(length: float, count: int, order: int, stiffness: float, mass: float) -> tuple[FloatArray, FloatArray]:
    """ω² and the modes, as coefficients of shapes, for ½ ∫ stiffness (d^order f/dx^order)² dx and ½ ∫ mass f² dx.

    They are normalised: M is the identity.
    """
    from scipy.linalg import eigh  # type: ignore[import-untyped, unused-ignore]

    if not count:
        return np.zeros(0), np.zeros((0, 0))
    nodes, weights = leggauss(count + order + 2)
    values = _polynomials(length, count, order, 0.5 * length * (nodes + 1.0))
    dx = 0.5 * length * weights
    K = stiffness * np.einsum("p,kp,lp->kl", dx, values[order], values[order])
    M = mass * np.einsum("p,kp,lp->kl", dx, values[0], values[0])
    squares, shapes = eigh(K, M)
    return np.asarray(squares), np.asarray(shapes)


ENDS: Final = ("clamped", "pinned", "free", "sliding")


def wave_numbers(ends: tuple[str, str], count: int) -> FloatArray:
    """βℓ of the bending vibrations of a beam with these ends, ω = (βℓ)² √(E I / ρ A) / ℓ², shape (count,), ascending.

    The zeros of the characteristic equation of the ends "clamped", "pinned", "free" or "sliding"; rigid motions are
    left out.  [Blevins1979]
    """
    if len(ends) != 2 or any(end not in ENDS for end in ends):
        raise ModelError(f"the ends of a beam are {ends!r}; each must be one of {', '.join(map(repr, ENDS))}")
    from scipy.optimize import brentq  # type: ignore[import-untyped, unused-ignore]

    count = check.count(count, "the number of wave numbers", 1)
    function = _characteristic(ends)
    grid = np.linspace(0.3, (count + 3) * math.pi, 40 * (count + 3))
    values = [function(x) for x in grid]
    found = [
        brentq(function, a, b, xtol=1e-15, rtol=4 * np.finfo(float).eps)
        for a, b, fa, fb in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True)
        if fa * fb < 0.0
    ]
    return np.array(found[:count])


def _characteristic(ends: tuple[str, str]) -> Any:
    """The determinant of the end conditions of a sin βx + b cos βx + c e^β(x − ℓ) + d e^−βx, as a function of βℓ."""
    rows = {"clamped": (0, 1), "pinned": (0, 2), "free": (2, 3), "sliding": (1, 3)}  # derivatives that vanish

    def derivatives(order: int, x: float, at: float) -> list[float]:
        angle = x * at + 0.5 * math.pi * order
        grow, fall = math.exp(x * (at - 1.0)), math.exp(-x * at)
        return [math.sin(angle), math.cos(angle), grow, (-1.0) ** order * fall]

    def determinant(x: float) -> float:
        matrix = [derivatives(n, x, at) for end, at in zip(ends, (0.0, 1.0), strict=True) for n in rows[end]]
        return float(np.linalg.det(np.array(matrix)))

    return determinant


def buckling_factor(ends: tuple[str, str]) -> float:
    """k of the buckling load k π² E I / ℓ² of a column with these ends: the least one. [Timoshenko1961]"""
    known = {
        ("clamped", "free"): 0.25,
        ("pinned", "pinned"): 1.0,
        ("clamped", "clamped"): 4.0,
        ("clamped", "sliding"): 1.0,
        ("clamped", "pinned"): (4.493409457909064 / math.pi) ** 2,
    }
    found = known.get(ends, known.get(ends[::-1]))
    if found is None:
        raise ModelError(f"the ends of a column are {ends!r}; known are {', '.join(map(str, known))}")
    return found
