"""Friction of contacts that open: impulses of hits and of shocks, and which contacts open, slip or stick.

Both are the problem on Coulomb's cone (:mod:`cardan.math._cone`) with G = J_c P M⁻¹ J_cᵀ, where joints are eliminated.
A hit solves it for velocities, u⁺ = u + G r.  For accelerations b = J_c v̇⁰ − γ_c without contact forces.  A contact
that slips already has a direction s, which no acceleration changes: a large multiple of s is added to its b.

Where only one contact slips, b_n + (G_nn − μ G_nt·s) N = 0 gives its force.  If the factor of N is not positive, there
is no finite force where b_n < 0: friction jams, and an impulse ends the slip (inconsistent).  Where b_n > 0, a force
and none are both possible (indeterminate); then the contact opens.  [Painleve1895]
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cardan.lazy import LazyModule
from cardan.system.state import FloatArray

_cone = LazyModule("cardan.math._cone")

TOLERANCE: Final = 1e-14  # of the problem on the cone
SWEEPS: Final = 2000.0
FASTER: Final = 1e6  # times the accelerations: what the direction of a slip adds
AT_REST: Final = 1e-10  # of the accelerations: smaller ones, and of the largest force, are rounding
SLIPPING: Final = 1e-6  # likewise where a contact slips, since FASTER makes rounding larger
JAMMED: Final = 1e-9  # of G_nn: a smaller factor of N
NEARLY_JAMMED: Final = 1e-2  # likewise, where no step can be made
INDEPENDENT: Final = 1e-9  # of a diagonal entry of G: a smaller rest is that of a dependent row
CARRIED: Final = 1e-12  # of a diagonal entry of J_c M⁻¹ J_cᵀ: joints alone hold a direction with a smaller G
DECIDING: Final = 1e-6  # of the friction forces: a smaller effect of their shares is that of rounding
STEPS: Final = 60  # of a bisection
GAIN: Final = 1e-12  # of the products of speeds and impulses: a larger positive work is a gain


class Choice(NamedTuple):
    """What contacts do, shape (contacts,), or (contacts, 2) of directions; accelerations, shape (contacts, 3).

    ``jammed``: number of the contact that friction jams, −1: none.  ``is_indeterminate``: whether it may also open.
    """

    opens: np.ndarray
    sticks: np.ndarray
    directions: FloatArray
    forces: FloatArray
    accelerations: FloatArray
    jammed: int = -1
    is_indeterminate: bool = False


def solve_cone(G: FloatArray, b: FloatArray, friction: FloatArray) -> tuple[FloatArray, float]:
    """r with u = G r + b on the cones, shape (contacts, 3), and its error relative to b."""
    m = friction.size
    r = np.zeros(3 * m)
    if not m or not np.abs(b).max() > 0.0:
        return r.reshape(m, 3), 0.0
    cone = _cone.Cone.new(tolerance=TOLERANCE, most=SWEEPS)
    matrix = np.ascontiguousarray(0.5 * (G + G.T)).ravel()
    given = np.ascontiguousarray(b, dtype=np.float64).ravel()
    scale = float(np.diag(G).max())
    if not scale > 0.0:
        return r.reshape(m, 3), 0.0
    work = np.zeros(_cone.work_size(m))
    _cone.solve(_cone.SOLVE, m, np.zeros(1, np.int64), matrix / scale, given, friction, r, cone.as_floats, work)
    return r.reshape(m, 3) / scale, float(cone.error) / float(np.abs(b).max())


def hit(G: FloatArray, u: FloatArray, restitution: FloatArray, friction: FloatArray) -> tuple[FloatArray, str, float]:
    """Impulses of a hit, shape (contacts, 3), the law of restitution, and the error; they never give energy.

    u, shape (contacts, 3): velocities before.  Newton's law, u_n⁺ = −e u_n⁻, may give energy with friction; then all e
    are multiplied by the largest factor with which it does not.
    """

    def impulses(factor: float) -> tuple[FloatArray, float]:
        b = u.copy()
        b[:, 0] += factor * restitution * np.minimum(u[:, 0], 0.0)
        return solve_cone(G, b, friction)

    r, error = impulses(1.0)
    if not is_gain(G, u, r):
        return r, "Newton", error
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if is_gain(G, u, impulses(middle)[0]):
            high = middle
        else:
            low = middle
    r, error = impulses(low)
    return r, "reduced", error


def is_gain(G: FloatArray, u: FloatArray, r: FloatArray) -> bool:
    """Whether the work of impulses is positive."""
    bound = GAIN * float(np.abs(u).max(initial=0.0)) * float(np.abs(r).max(initial=0.0))
    return float(np.sum(r * u) + 0.5 * r.ravel() @ G @ r.ravel()) > bound


def choose(G: FloatArray, b: FloatArray, slips: FloatArray, coefficients: FloatArray, least: float) -> Choice:
    """Which contacts open, slip, or stick.

    slips, shape (contacts, 2): the directions of those that slip, zero of others.  coefficients, shape (contacts, 2):
    static and kinetic.  least: of G_nn; a smaller factor of N is that of a jam.
    """
    m = len(slips)
    moves = np.abs(slips).max(axis=1, initial=0.0) > 0.0
    directions = slips.copy()
    for k in np.flatnonzero(moves & (coefficients[:, 1] > 0.0)).tolist():
        row = G[3 * k]
        factor = row[3 * k] - coefficients[k, 1] * float(row[3 * k + 1 : 3 * k + 3] @ slips[k])
        if not factor > least * row[3 * k] and row[3 * k] > 0.0:
            none = np.zeros((m, 3))
            is_open = bool(b[k, 0] > 0.0)
            return Choice(np.zeros(m, bool), np.zeros(m, bool), directions, none, b, k, is_open)
    friction = np.where(moves, coefficients[:, 1], coefficients[:, 0])
    scale = float(np.abs(b).max(initial=0.0))
    for _ in range(2):
        given = b.copy()
        given[:, 1:] += FASTER * max(scale, np.finfo(float).tiny) * directions
        small = SLIPPING if moves.any() else AT_REST
        r, _ = solve_cone(G, given, friction)
        after = (G @ r.ravel()).reshape(m, 3) + b
        largest = float(r.max(initial=0.0))
        opens = (r[:, 0] <= small * largest) & (after[:, 0] > small * scale)
        begins = ~moves & ~opens & (np.hypot(after[:, 1], after[:, 2]) > small * scale) & (friction > 0.0)
        for k in np.flatnonzero(begins).tolist():
            size = float(np.hypot(r[k, 1], r[k, 2]))
            toward = -r[k, 1:] / size if size > 0.0 else after[k, 1:] / np.hypot(after[k, 1], after[k, 2])
            directions[k] = toward
        moves = moves | begins
        if not (begins & (coefficients[:, 0] > coefficients[:, 1])).any():
            break
        friction = np.where(begins, coefficients[:, 1], friction)
    sticks = ~opens & ~moves & (friction > 0.0)
    return Choice(opens, sticks, directions, r, after)


def independent(G: FloatArray, carried: FloatArray, normals: list[int], tangents: list[int]) -> tuple[list[int], bool]:
    """Rows of G, normal ones first, that are independent, and whether others depend on them.

    carried, shape (rows,): the diagonal of J_c M⁻¹ J_cᵀ; directions that joints and drivers alone hold are neither.
    Normal ones of these are chosen, too: drivers that push there contradict them.
    """
    chosen: list[int] = []
    depend = False
    basis: list[FloatArray] = []  # rows of the factor of Cholesky, by columns of G
    for i in [*normals, *tangents]:
        if not G[i, i] > CARRIED * carried[i]:
            chosen += [i] if i in normals else []
            continue
        row = G[i].copy()
        for line in basis:
            row -= line[i] * line
        if row[i] > INDEPENDENT * G[i, i]:
            chosen.append(i)
            basis.append(row / np.sqrt(row[i]))
        else:
            depend = True
    return chosen, depend


def decides(normal: FloatArray, drag: FloatArray) -> bool:
    """Whether the friction of contacts that slip depends on a choice of their normal forces that is not unique.

    normal, shape (contacts, contacts): of G, its normal components.  drag, shape (unknowns, contacts): the friction
    forces for unit normal forces, or what they do, scaled.
    """
    sizes = np.sqrt(np.maximum(np.diag(normal), 0.0))
    if not sizes.any():
        return False
    scale = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    values, vectors = np.linalg.eigh(normal * scale[:, None] * scale)
    free = scale[:, None] * vectors[:, values <= INDEPENDENT * values[-1]]
    return bool(free.size and np.abs(drag @ free).max() > DECIDING * np.abs(drag * np.abs(free).max()).max())
