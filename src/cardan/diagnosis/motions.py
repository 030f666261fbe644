"""Free motions in metres and radians, one joint coordinate each where possible, and in words.

A basis N of the free motions, from the singular values, mixes them.  With C the rates of all coordinates of joints and
bodies in these motions, dof rows of C are chosen, and N C⁻¹ is the basis in which each chosen coordinate has the rate 1
in one motion and 0 in the others.  Coordinates of joints with the ground are preferred, then those of other joints,
then positions and rotations of bodies; but a row is not chosen if it is nearly dependent on those before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cardan.coordinates import formulations, rates
from cardan.math import euler
from cardan.system import tables as layout
from cardan.system.relations import Edge, Place
from cardan.system.state import FloatArray
from cardan.system.system import System

MOVES = 1e-6  # of the fastest body, scaled: a body that moves less does not move
DEPENDENT = 1e-3  # of the largest: a coordinate with a smaller rate is not chosen before another
NAMED = 4  # bodies that a text names


class FreeMotion(NamedTuple):
    """A free motion in words: ``body`` and what it does, its ``unit`` "rad" or "m"; ``bodies``: all that move."""

    body: str
    does: str
    unit: str
    bodies: tuple[str, ...]

    def text(self) -> str:
        """For example "crank turns about A; coupler, rocker move with it"."""
        others = [name for name in self.bodies if name != self.body]
        if not others:
            return f"{self.body} {self.does}"
        named = ", ".join(others[:NAMED]) + (f" and {len(others) - NAMED} more" if len(others) > NAMED else "")
        return f"{self.body} {self.does}; {named} {'moves' if len(others) == 1 else 'move'} with it"


class _Choice(NamedTuple):
    """A coordinate that may describe a motion: its words, its unit, and its rate in every motion, shape (dof,)."""

    body: str
    does: str
    unit: str
    rate: FloatArray


def describe(
    system: System, coordinates: FloatArray, near: FloatArray, basis: FloatArray
) -> tuple[FloatArray, list[FreeMotion]]:
    """The motions of a piece: ṙ of body origins in world axes and ω in body axes, shape (dof, bodies, 6), and in words.

    basis, shape (dof, unknowns): on the manifold, in solver coordinates, lengths in units of L.
    """
    bodies = len(system.names)
    if not len(basis):
        return np.zeros((0, bodies, 6)), []
    q = formulations.to_reference(system, coordinates, near)
    length = system.extent_at(q)
    scales = np.tile([length] * 3 + [1.0] * 3, bodies)
    rest = np.zeros(6 * bodies)
    of_bodies = basis[:, : 6 * bodies]
    found = np.array([rates.at_origins(system, q, scales * motion, rest)[0] for motion in of_bodies])
    choices = _variable_choices(system, basis[:, 6 * bodies :])
    choices += _joint_choices(system, coordinates, found) + _body_choices(system, coordinates, found)
    chosen = _independent(choices, length)
    chosen_rates = np.array([choices[k].rate for k in chosen])
    try:
        inverse = np.linalg.inv(chosen_rates)
    except np.linalg.LinAlgError:
        inverse = np.full_like(chosen_rates, np.nan)
    if not np.isfinite(inverse).all():  # origins or points too far away to tell the coordinates apart
        inverse = np.eye(len(basis))
        choices, chosen = [_Choice(name, "moves", "", chosen_rates[0]) for name in system.names], [0] * len(basis)
    motions = np.einsum("jbi,jk->kbi", found, inverse)
    sizes = np.abs(of_bodies.T @ inverse).reshape(bodies, 6, -1).max(axis=1)  # scaled, shape (bodies, dof)
    scale = np.abs(basis.T @ inverse).max(axis=0)
    words = []
    for choice, size, largest in zip([choices[k] for k in chosen], sizes.T, scale, strict=True):
        moving = tuple([name for name, s in zip(system.names, size, strict=True) if s > MOVES * largest])
        words.append(FreeMotion(choice.body, choice.does, choice.unit, moving))
    return motions, words


def describe_free(name: str) -> list[FreeMotion]:
    """The six motions of a body without constraints, in words."""
    return [FreeMotion(name, does, unit, (name,)) for does, unit in _BODY]


_BODY = tuple([(f"moves along {k}", "m") for k in "xyz"] + [(f"turns about {k}", "rad") for k in "xyz"])


def _variable_choices(system: System, rate: FloatArray) -> list[_Choice]:
    """Free parameters, by name."""
    return [_Choice(f"parameter {name!r}", "changes", "", rate[:, k]) for k, name in enumerate(system.variables.free)]


def _body_choices(system: System, coordinates: FloatArray, found: FloatArray) -> list[_Choice]:
    """Positions of body origins and rotations, along the world's axes."""
    A = euler.matrix(coordinates[:, 3:])
    rotations = np.einsum("bij,kbj->kbi", A, found[:, :, 3:])
    rate = np.concatenate([found[:, :, :3], rotations], axis=2)
    return [
        _Choice(name, does, unit, rate[:, b, i])
        for b, name in enumerate(system.names)
        for i, (does, unit) in enumerate(_BODY)
    ]


def _joint_choices(system: System, coordinates: FloatArray, found: FloatArray) -> list[_Choice]:
    """Coordinates of the joints that declare a motion, those with the ground first."""
    number = system.numbers()
    grounded: list[_Choice] = []
    others: list[_Choice] = []
    for name, edge in system.edges.items():
        if edge.user_motion is not None:
            continue  # its coordinates are the user's; the motions of its bodies are told
        a, b = number[edge.a.body], number[edge.b.body]
        found_here = _of_joint(name, edge, (a, b), system.names, coordinates, found)
        (grounded if min(a, b) < 0 else others).extend(found_here)
    return grounded + others


def _of_joint(
    name: str, edge: Edge, ends: tuple[int, int], names: tuple[str, ...], coordinates: FloatArray, found: FloatArray
) -> list[_Choice]:
    """The coordinates of one joint: rates of b relative to a, along and about the axes of its frames."""
    a, b = ends
    point, axes_b = _in_world(edge.b, b, coordinates)
    _, axes_a = _in_world(edge.a, a, coordinates)
    velocity, rotation = (y - x for x, y in zip(*(_twist(k, point, coordinates, found) for k in ends), strict=True))
    body = names[b] if b >= 0 else names[a]
    relative = f" relative to {names[a]}" if min(a, b) >= 0 else ""
    along = {0: "", 1: "z", 2: "xy", 3: "xyz"}[edge.motion.translations]
    choices = []
    if edge.motion.rotation == layout.ABOUT_Z:
        choices.append((f"turns about {name}", "rad", rotation @ axes_a[2]))
    elif edge.motion.rotation == layout.CROSSED:
        choices.append((f"turns about the first axis of {name}", "rad", rotation @ axes_a[2]))
        choices.append((f"turns about the second axis of {name}", "rad", rotation @ axes_b[2]))
    elif edge.motion.rotation == layout.ANYHOW:
        choices += [(f"turns about {k} of {name}", "rad", rotation @ axes_a["xyz".index(k)]) for k in "xyz"]
    for k in along:
        where = name if along == "z" else f"{k} of {name}"
        choices.append((f"moves along {where}", "m", velocity @ axes_a["xyz".index(k)]))
    return [_Choice(body, does + relative, unit, rate) for does, unit, rate in choices]


def _in_world(place: Place, body: int, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Origin [m] and the axes x, y, z in rows, in world."""
    drawn: FloatArray = np.frombuffer(place.floats).reshape(4, 3)
    if body < 0:
        return drawn[0], drawn[1:]
    A = euler.matrix(coordinates[body, 3:])
    return coordinates[body, :3] + A @ drawn[0], drawn[1:] @ A.T


def _twist(body: int, point: FloatArray, coordinates: FloatArray, found: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Velocities of a point [m] of a body, and ω in world axes, in every motion, shape (dof, 3) each."""
    if body < 0:
        return np.zeros((len(found), 3)), np.zeros((len(found), 3))
    rotation: FloatArray = found[:, body, 3:] @ euler.matrix(coordinates[body, 3:]).T
    return found[:, body, :3] + np.cross(rotation, point - coordinates[body, :3]), rotation


def _independent(choices: list[_Choice], length: float) -> list[int]:
    """Numbers of dof coordinates whose rates are independent, the first that is not nearly dependent each time."""
    rest = np.array([choice.rate / (length if choice.unit == "m" else 1.0) for choice in choices])
    chosen: list[int] = []
    for _ in range(rest.shape[1]):
        size = np.abs(rest).max(axis=1)  # not squared, which could overflow
        k = int(np.argmax(size >= DEPENDENT * size.max()))
        chosen.append(k)
        direction = rest[k] / size[k]
        direction /= np.sqrt(direction @ direction)
        for _ in range(2):  # again: the first pass leaves rounding
            rest = rest - np.outer(rest @ direction, direction)
    return chosen
