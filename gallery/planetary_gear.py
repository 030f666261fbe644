"""Planetary gear train: a sun, three planets on a carrier, and a ring fixed by a brake.  [Muller1982]

Sun, planets and ring have 24, 36 and 96 teeth of module 2.5 mm.  The planet axes are fixed to the carrier, so the gear
ratios apply to angles relative to the carrier: −24/36 from sun to planet, 96/36 from ring to planet.  The Grübler count
is 6·6 − 6·5 − 6 = 0.  The equations of the second and third planet are redundant: there are two degrees of freedom.

Willis equation: relative to the carrier, sun and ring form an ordinary gear train,
(ω_sun − ω_carrier) 24 + (ω_ring − ω_carrier) 96 = 0.  With the ring fixed, ω_sun = (1 + 96/24) ω_carrier = 5 ω_carrier.

At the contact point of two pitch circles, a tooth of one gear is in a gap of the other; both have the same velocity.
"""

from __future__ import annotations

from math import atan2, ceil, cos, pi, radians, remainder, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from cardan.math import euler
from gallery.checks import expect, rotated, run_move, velocity, without_drivers
from gallery.looks import STEEL, rod
from gallery.masses import with_masses
from gallery.planar import X, Z

SUN, PLANET, RING = 24, 36, 96  # teeth
MODULE = 0.0025  # m of pitch diameter per tooth
WIDTH = 0.014  # m, of the drawn teeth
PLANETS = 3
ARM = MODULE * (SUN + PLANET) / 2  # m, radius of the planet axes
DURATION = 5.0  # s for one turn of the carrier
TURNS, POSES = 200, 40  # of the sun, and poses to check
# The other two modes: fixed, driven and free member, and the speed of the free one relative to the driven one.
OTHERS = (("carrier", "sun", "ring", -SUN / RING), ("sun", "ring", "carrier", RING / (SUN + RING)))
FEW = 5  # turns, and seconds, in these modes


def motor_angle(t: Any) -> Any:
    """Angle [rad] of the sun at time t [s]: one turn per second."""
    return 2 * cd.pi * t


def azimuth(k: int) -> float:
    """Azimuth [rad] of a planet on the carrier."""
    return 2 * pi * k / PLANETS


def phase(k: int) -> float:
    """Angle [rad] of a planet on the carrier at which it meshes with sun and ring, with all other angles zero.

    With a tooth on the x axis of every gear, sun and planet mesh at azimuth α where
    SUN·α + PLANET·(α + π − θ) = π modulo 2π; the ring then meshes too, because SUN + RING is a multiple of the
    number of planets and PLANET is even.
    """
    return remainder((SUN + PLANET) * azimuth(k) / PLANET + pi - pi / PLANET, 2 * pi / PLANET)


def build() -> cd.Mechanism:
    """Gears in layers, rotated slightly out of mesh, the planets slightly too far out."""
    m = cd.Mechanism("planetary_gear", gravity=(0.0, -9.81, 0.0))
    sun = m.body("sun", position=(0.002, 0.0, 0.0), orientation=euler.from_axis_angle(Z, radians(8.0)))
    ring = m.body("ring", position=(0.0, 0.003, 0.002), orientation=euler.from_axis_angle(Z, radians(-5.0)))
    carrier = m.body("carrier", position=(0.0, 0.0, -0.003), orientation=euler.from_axis_angle(Z, radians(10.0)))
    sun.attach(cd.shapes.gear(MODULE, SUN, WIDTH, bore=0.008), sun.frame(x=X))
    rod(sun, (0, 0, -0.02), (0, 0, 0.02), 0.008, STEEL)
    ring.attach(cd.shapes.gear(MODULE, RING, WIDTH, internal=True, outer=0.5 * MODULE * RING + 0.012), ring.frame(x=X))
    corners = [(ARM * cos(azimuth(k)), ARM * sin(azimuth(k))) for k in range(PLANETS)]
    plate = cd.shapes.plate(corners, thickness=0.006, radius=0.016, holes=[(0.0, 0.0, 0.012)])
    carrier.attach(plate, carrier.frame((0, 0, -0.5 * WIDTH - 0.005), x=X))
    for name, body in (("sun", sun), ("ring", ring), ("carrier", carrier)):
        m.revolute(f"{name}_bearing", m.ground.frame(z=Z, x=X), body.frame(z=Z, x=X))
    on_carrier = {
        name: cd.coordinate(carrier.frame(z=Z, x=X), body.frame(z=Z, x=X), "angle")
        for name, body in (("sun", sun), ("ring", ring))
    }
    for k in range(PLANETS):
        arm = (ARM * cos(azimuth(k)), ARM * sin(azimuth(k)), 0.0)
        planet = m.body(f"planet_{k + 1}", position=(1.1 * arm[0], 1.1 * arm[1], 0.0))
        planet.attach(cd.shapes.gear(MODULE, PLANET, WIDTH, bore=0.01), planet.frame(x=X))
        rod(carrier, (*arm[:2], -0.5 * WIDTH - 0.008), (*arm[:2], 0.5 * WIDTH + 0.003), 0.0095, STEEL)
        bearing = m.revolute(f"planet_bearing_{k + 1}", carrier.frame(arm, z=Z, x=X), planet.frame(z=Z, x=X))
        m.gear(f"sun_mesh_{k + 1}", on_carrier["sun"], bearing, ratio=-SUN / PLANET, phase=phase(k))
        m.gear(f"ring_mesh_{k + 1}", on_carrier["ring"], bearing, ratio=RING / PLANET, phase=phase(k))
    m.drive("motor", m["sun_bearing"], motor_angle)
    m.drive("brake", m["ring_bearing"], 0.0)
    return with_masses(m)


def _angle(state: cd.State, body: str) -> float:
    """Angle [rad] of a body's x axis; checks its z axis."""
    expect(f"axis of {body}", rotated(state[body], Z), Z)
    x, y, _ = rotated(state[body], X)
    return atan2(y, x)


def _check_teeth(state: cd.State) -> None:
    """At every mesh a tooth is in a gap, computed from the poses only."""
    sun, ring, carrier = (_angle(state, name) for name in ("sun", "ring", "carrier"))
    for k in range(PLANETS):
        name = f"planet_{k + 1}"
        x, y, z = state[name].position
        at, planet = atan2(y, x), _angle(state, name)
        arm = (ARM * cos(carrier + azimuth(k)), ARM * sin(carrier + azimuth(k)), 0.0)
        expect(f"centre of {name}", (x, y, z), arm)
        outside = SUN * (at - sun) + PLANET * (at + pi - planet)
        inside = PLANET * (at - planet) - RING * (at - ring)
        expect(f"mesh of {name} with the sun", (cos(outside), sin(outside)), (-1.0, 0.0))
        expect(f"mesh of {name} with the ring", (cos(inside), sin(inside)), (-1.0, 0.0))


def _check_rolling(state: cd.State) -> None:
    """At the contact points of the pitch circles, both gears have the same velocity."""
    for k in range(PLANETS):
        name = f"planet_{k + 1}"
        middle = state[name].position
        for other, teeth in (("sun", SUN), ("ring", RING)):
            touch = middle * (MODULE * teeth / 2 / ARM)
            expect(f"contact of {other} and {name}", velocity(state, other, touch), velocity(state, name, touch))


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The planets are on their axes and mesh with sun and ring."""
    _check_teeth(result.state)
    return [f"{PLANETS} planets of {PLANET} teeth mesh with a sun of {SUN} and a ring of {RING}, tooth in gap"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Many turns with the ring fixed, then with the carrier and with the sun fixed."""
    moved = run_move(mechanism, np.linspace(0.0, TURNS, POSES + 1), state)
    found = {name: moved.coordinate(mechanism[f"{name}_bearing"]) for name in ("sun", "carrier")}
    sun = 2 * pi * moved.times
    carrier = sun * SUN / (SUN + RING)
    expect("angle of the sun", found["sun"], sun)
    expect("angle of the carrier", found["carrier"], carrier)
    for pose in moved.states[-2:]:  # where the angles are largest
        _check_teeth(pose)
        _check_rolling(pose)
    on_arm = [-(SUN / PLANET) * (1.0 - SUN / (SUN + RING)) * TURNS + phase(k) / (2 * pi) for k in range(PLANETS)]
    counts = {"sun_bearing": TURNS, "ring_bearing": 0, "carrier_bearing": TURNS * SUN // (SUN + RING)}
    counts |= {f"planet_bearing_{k + 1}": ceil(turns - 0.5) for k, turns in enumerate(on_arm)}
    counted = {name: moved.states[-1].turns[name] for name in counts}
    if counted != counts:
        raise ExampleError(f"after {TURNS} turns of the sun the counted turns are {counted}, not {counts}")
    error = max(np.abs(found["sun"] - sun).max(), np.abs(found["carrier"] - carrier).max())
    facts = [
        f"in {TURNS} turns of the sun the carrier makes {counted['carrier_bearing']} counted turns; both angles are "
        f"correct within {error:.0e} rad"
    ]
    for fixed, driven, free, ratio in OTHERS:
        other = without_drivers(mechanism)
        other.drive("motor", other[f"{driven}_bearing"], motor_angle)
        other.drive("brake", other[f"{fixed}_bearing"], 0.0)
        moved = run_move(other, np.linspace(0.0, FEW, FEW + 1), other.assemble().state)
        expect(f"angle of the {free}", moved.coordinate(other[f"{free}_bearing"]), 2 * pi * ratio * moved.times)
        _check_teeth(moved.states[-1])
        _check_rolling(moved.states[-1])
        facts.append(f"with the {fixed} fixed the speed ratio of {free} to {driven} is {ratio:g}")
    return facts
