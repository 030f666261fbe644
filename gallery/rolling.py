"""What the examples with contacts share: material velocities at a contact, discs, runs of a simulation."""

from __future__ import annotations

from math import cos, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cardan as cd
from cardan.examples import ExampleError
from gallery.checks import expect, velocity
from gallery.looks import UNSEEN, X

SLIP = 1e-9  # m/s: of parts of about 1 m that move at about 1 m/s


def disc(
    body: cd.Body,
    radius: float,
    thickness: float,
    at: Any = (0.0, 0.0, 0.0),
    z: Any = (0.0, 0.0, 1.0),
    color: str | None = None,
) -> Any:
    """A round plate about a point of a body, and its rim as a face."""
    frame = body.frame(at, z=z, x=X if abs(z[0]) < 0.5 else (0.0, 1.0, 0.0))
    body.attach(cd.shapes.cylinder(radius, thickness), frame, color=color)
    return body.attach(cd.geometry.circle(radius), frame, color=UNSEEN)


def oval(body: cd.Body, a: float, b: float, thickness: float, at: Any = (0.0, 0.0, 0.0)) -> Any:
    """An elliptic plate about a point of a body in its plane xy, and its rim as a face."""
    frame = body.frame(at, x=X)
    body.attach(cd.shapes.extrusion(oval_outline(a, b), thickness), frame)
    return body.attach(cd.geometry.ellipse(a, b), frame, color=UNSEEN)


def oval_outline(a: float, b: float) -> list[tuple[float, float]]:
    """Points of an ellipse with the half axes a and b."""
    return [(a * cos(t), b * sin(t)) for t in np.linspace(0.0, 2 * np.pi, 120, endpoint=False)]


def slip(state: cd.State, contact: str, a: str | None, b: str) -> NDArray[np.float64]:
    """Velocity [m/s] of the material point of body b at a contact relative to that of body a, or to the ground."""
    point = state.contact(contact).point
    other = np.zeros(3) if a is None else velocity(state, a, point)
    return np.asarray(velocity(state, b, point) - other)


def expect_rolling(state: cd.State, contact: str, a: str | None, b: str) -> None:
    """The gap is closed, and the two material points at the contact have the same velocity."""
    expect(f"gap of {contact}", state.contact(contact).gap, 0.0)
    expect(f"slip of {contact}", slip(state, contact, a, b), np.zeros(3), SLIP)


def run_simulation(mechanism: cd.Mechanism, duration: float, state: cd.State, rtol: float = 1e-9) -> cd.Simulation:
    """A complete simulation; raises ExampleError unless it is."""
    simulation = mechanism.simulate(duration, state, rtol=rtol)
    if not simulation.ok:
        raise ExampleError(f"the simulation of {mechanism.name} ends early; {simulation.text()}")
    return simulation
