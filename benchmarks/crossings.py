"""Count Python calls within Cardan, and those between its packages: ``python benchmarks/crossings.py``.

The verbs are called on a spatial four-bar (revolute, spherical, universal, revolute) with warm kernels.  "First": no
system was packed before.  A drag is a session, a grasp, a target and one cycle.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import cardan as cd

ROOT = "cardan."
D, X, Z = (3.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
BALL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))  # kg m²


def four_bar() -> cd.Mechanism:
    """The RSUR four-bar."""
    m = cd.Mechanism("rsur")
    crank = m.body("crank", orientation=(Z, 0.7), mass=1.0, inertia=BALL)
    coupler = m.body("coupler", position=(0.8, 0.6, 0.0), orientation=((0.0, 1.0, 0.0), -0.8), mass=1.0, inertia=BALL)
    rocker = m.body("rocker", position=D, orientation=("zxz", (0.0, -1.3, -1.4)), mass=1.0, inertia=BALL)
    m.revolute("A", m.ground.frame(z=Z, x=X), crank.frame(z=Z, x=X))
    m.spherical("B", crank.point((1, 0, 0)), coupler.point())
    m.universal("C", coupler.frame((4, 0, 0), z=Z), rocker.frame((2, 0, 0), z=Z))
    m.revolute("D", m.ground.frame(D, z=(0.0, 1.0, 0.3), x=X), rocker.frame(z=Z, x=X))
    return m


def drag(m: cd.Mechanism, state: cd.State) -> None:
    """One cycle of a hand on the crank."""
    session = m.session(state)
    session.grasp(m["crank"], (1.0, 0.0, 0.0)).target = (0.7, 0.7, 0.1)
    session.step()


def package_of(frame: FrameType) -> str:
    """The package of Cardan in which a function is defined, such as "analysis"; "" if it is not of Cardan."""
    name: str = frame.f_globals.get("__name__", "")
    return name.split(".")[1] if name.startswith(ROOT) else ""


def count(verb: Callable[[], Any]) -> tuple[int, int]:
    """Calls of Python functions of Cardan, and those of them whose caller is in another package of it."""
    calls = crossings = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls, crossings
        if event != "call" or not (package := package_of(frame)):
            return
        calls += 1
        caller = frame.f_back
        while caller is not None and not package_of(caller):
            caller = caller.f_back
        crossings += caller is not None and package_of(caller) != package

    sys.setprofile(profile)
    try:
        verb()
    finally:
        sys.setprofile(None)
    return calls, crossings


def rows() -> dict[str, tuple[int, int]]:
    """Of each verb the calls and the crossings."""
    state = four_bar().assemble().state
    for _ in range(2):  # the first round loads modules and kernels
        one, other, third = four_bar(), four_bar(), four_bar()
        found = {
            "first assemble": count(one.assemble),
            "again": count(one.assemble),
            "first simulate": count(lambda m=other: m.simulate(0.1, state)),
            "first drag": count(lambda m=third: drag(m, state)),
        }
    return found


if __name__ == "__main__":
    found = rows()
    found["sum"] = tuple(map(sum, zip(*found.values(), strict=True)))
    for name, (calls, crossings) in found.items():
        print(f"{name:16}{calls:6} calls{crossings:6} crossings")
