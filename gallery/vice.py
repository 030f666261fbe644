"""Vice, with parts from a STEP file: a spindle in a threaded body moves a jaw along its guides.

The thread has real helical faces; its pitch is read from them.  The spindle is turned 10 times and moves the jaw by 10
times the pitch.  Grübler count 18 − 5 − 5 − 5 − 6 = −3 (slide, thread, collar, handle), one freedom: the slide and the
thread both keep the jaw on the axis.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from gallery import solids
from gallery.checks import expect, placed, rates, rotated, run_move
from gallery.solids import Tree, bore, box, cut, cylinder, fuse, moved, on, ridge, scattered

PITCH = 4.0e-3  # m
TURNS, DURATION, POSES = 10, 5.0, 20
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
ALONG_X = (2**-0.5, 0.0, 2**-0.5, 0.0)  # turns z to x
ENGAGED = 0.06  # m along the spindle: where the nut is at angle 0
JOURNAL = 0.1  # m along the spindle: the middle of its journal, in the jaw


def tree() -> Tree:
    """Body, jaw, spindle and handle: the spindle along x in a nut at x = 0, its journal in the jaw at x = 100 mm."""
    grey, blue, steel = (0.42, 0.45, 0.5), (0.15, 0.35, 0.6), (0.78, 0.79, 0.8)
    thread = fuse(cylinder(7, 96, (0, 0, -30)), moved(ridge(7, 8.5, 4, 70), (0, 0, -25)), cylinder(5, 16, (0, 0, 66)))
    spindle = fuse(moved(thread, (26, 0, 0), ALONG_X), cylinder(11, 14, (-16, 0, 0), X))
    spindle = cut(spindle, cylinder(3, 40, (-9, 0, -20)))
    nut = cut(
        box((16, 60, 40), (0, 0, 2)),
        moved(fuse(cylinder(7, 60, (0, 0, -30)), ridge(7, 8.5, 4, 28)), (-14, 0, 0), ALONG_X),
    )
    rails = [box((170, 10, 14), (77, y, -25)) for y in (-25, 25)]
    body = fuse(nut, box((170, 60, 8), (77, 0, -32)), *rails, box((16, 60, 52), (154, 0, 8)))
    jaw = fuse(box((20, 76, 40), (0, 0, 2)), *[box((20, 14, 22), (0, y, -7)) for y in (-37, 37)])
    jaw = cut(jaw, *[box((20, 10.0, 14), (0, y, -25)) for y in (-25, 25)], cylinder(5, 20, (-10, 0, 0), X))
    handle = fuse(cylinder(3, 70, (0, 0, -35)), cylinder(4.5, 4, (0, 0, -37)), cylinder(4.5, 4, (0, 0, 33)))
    return scattered(
        {"body": (body, grey), "jaw": (jaw, blue), "spindle": (spindle, steel), "handle": (handle, steel)}, 7
    )


def spindle_angle(t: Any) -> Any:
    """[rad] at time t [s]."""
    return 2 * cd.pi * TURNS * t / DURATION


def build() -> cd.Mechanism:
    """The parts as they are in the file, scattered; joints on their faces."""
    found = solids.parts(__name__)
    m = cd.Mechanism("vice")
    body, jaw, spindle, handle = (m.add(part, density=7850.0, fixed=name == "body") for name, part in found.items())
    flank = next((face for face in found["body"].faces if face.thread is not None), None)
    if flank is None or flank.thread is None:
        raise ExampleError("the body of the vice has no helical face")
    nut = bore(found["body"], 7e-3, (0, 0, 0))
    journal = bore(found["jaw"], 5e-3, (0, 0, 0))
    hole = bore(found["spindle"], 3e-3, (-9e-3, 0, 0))
    m.prismatic("slide", body.frame((0, 0, 0), z=X, x=Z), jaw.frame((0, 0, 0), z=X, x=Z))
    m.screw("thread", on(nut, body, X, Z), spindle.frame((ENGAGED, 0, 0), z=X, x=Z), pitch=PITCH)
    m.revolute("collar", on(journal, jaw, X, Z), on(bore(found["spindle"], 5e-3, (JOURNAL, 0, 0)), spindle, X, Z))
    m.fixed("press fit", on(hole, spindle, Z, X), on(bore(found["handle"], 3e-3, (0, 0, 0)), handle, Z, X))
    m.drive("hand", m["thread"].of("angle"), spindle_angle)
    expect("pitch of the helical face", abs(flank.thread.pitch), PITCH, 1e-6)
    return m


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The jaw on its guides, by the pitch."""
    state = result.state
    turns = mechanism["thread"].coordinate(state, "angle") / (2 * pi)
    jaw, spindle = state["jaw"], state["spindle"]
    expect("axes of the jaw", [*rotated(jaw, X), *rotated(jaw, Z)], [*X, *Z])
    expect("axis of the spindle", rotated(spindle, X), X)
    nut = bore(solids.parts(__name__)["body"], 7e-3, (0, 0, 0)).middle
    expect("the spindle in its nut", placed(spindle, (ENGAGED, 0, 0)), (nut[0] + PITCH * turns, 0.0, 0.0))
    expect("the jaw on the spindle", placed(jaw, (0, 0, 0)), placed(spindle, (JOURNAL, 0, 0)))
    return [f"the spindle is turned {turns:.6f} times, the jaw is at {jaw.position[0]:.9f} m"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Ten turns move the jaw by ten pitches."""
    poses = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states
    first = poses[0]["jaw"].position
    for pose in poses:
        turns = TURNS * pose.time / DURATION
        expect("travel of the jaw", pose["jaw"].position - first, (PITCH * turns, 0.0, 0.0))
        v, spin = rates(pose, "jaw")
        expect("speed of the jaw", (*v, *spin), (PITCH * TURNS / DURATION, 0, 0, 0, 0, 0))
    return [f"{TURNS} turns of the spindle move the jaw by {1e3 * PITCH * TURNS:g} mm"]
