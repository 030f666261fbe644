"""Contacts that pull: a contact is a bilateral constraint, while a real contact would open there.

The multiplier λ of a contact is the force against its gap: λ < 0 presses, λ > 0 pulls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from cardan.dynamics import joint_inertias
from cardan.dynamics.equations import Equations
from cardan.dynamics.reactions import Connection, loads_at
from cardan.joints import Role
from cardan.system.state import FloatArray

PULL: Final = 1e-6  # of the forces on the two bodies: a smaller pull is an error of integration
ROUNDING: Final = 1e-12  # of the largest force on any body


def pulling(
    equations: Equations,
    connections: Mapping[str, Connection],
    results: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
    is_shared: Callable[[str], bool],
) -> tuple[str, ...]:
    """Contacts whose normal force pulls, in words, with the first time [s] at which it does.

    results: times [s], q, v, v̇ and λ; the first dimension of each is that of the times.  v and v̇ are those of the
    principal frames, shape (times, bodies, 6).
    is_shared: whether redundant equations leave the λ of a constraint undetermined.
    Left out are points and frames on curves and surfaces, which are guided on both sides, and curves that cross in
    space, which have no side.
    """
    times, q, v, a, multipliers = results
    pulls = {name: row for name, row in _rows(equations, connections).items() if (multipliers[:, row] > 0.0).any()}
    if not pulls:
        return ()
    inertia, loads = joint_inertias.forces(equations, times, q, v, a), loads_at(equations, times, q, v)
    on_bodies = np.maximum(np.abs(inertia), np.abs(loads))
    on_bodies[:, :, 3:] /= equations.system.judged_length
    sizes = on_bodies.max(axis=(0, 2))  # [N] on each body
    found = []
    for name, row in pulls.items():
        force = multipliers[:, row]
        bodies = [equations.system.numbers()[place.body] for place in connections[name].places]
        own = max([float(sizes[k]) for k in bodies if k >= 0] + [float(np.abs(force).max())])
        at = np.flatnonzero(force > max(PULL * own, ROUNDING * float(sizes.max())))
        if not at.size or not sizes.any() or is_shared(name):
            continue
        how = f"from t = {times[at[0]]:g} s, with up to" if len(times) > 1 else "with"
        found.append(f"contact {name!r} pulls {how} {force.max():.3g} N: a real contact would open there")
    return tuple(found)


def _rows(equations: Equations, connections: Mapping[str, Connection]) -> dict[str, int]:
    """The number of the equation of each contact that has a side."""
    starts = {row.constraint: row.start for row in equations.system.rows}
    numbers = {int(row): k for k, row in enumerate(equations.equations)}
    opening = {one.name for one in equations.openings}
    return {
        name: numbers[starts[name]]
        for name, touch in equations.system.index.contacts.items()
        if name not in opening
        and name in connections
        and connections[name].kind.role is Role.CONTACT
        and not touch.pair.crossed
    }
