"""One mechanism for each kind of a user's function; run as a program, it prints the numbers that they give as JSON.

``python own_functions.py interpreted``: as without Numba.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import cardan as cd
from cardan.constraints import kernels, tape
from cardan.math import euler


@cd.primitive(i="point", j="point", up="vector of i")
def leaning(i, j, up, *, length):
    return [cd.norm(j - i) - length, cd.dot(up, j - i) - 0.25 * cd.sin(3.0 * (j - i).x)]


def gap(x, c, out):
    out[0] = (x[3] - x[0]) ** 2 + (x[4] - x[1]) ** 2 - c[0] ** 2 if x[0] < 1e9 else 0.0


def gap_derivative(x, c, out):
    for k in range(2):
        out[k], out[3 + k] = 2 * (x[k] - x[3 + k]), 2 * (x[3 + k] - x[k])
    out[2] = out[5] = 0.0


in_cylinder = cd.primitive(p="point", q="point", unit="m²", rows=1, parameters=["radius"], derivative=gap_derivative)(
    gap
)


@cd.rate_primitive(i="point", axis="vector of i")
def blade(i, axis):
    return cd.dot(axis, cd.rate(i))


@cd.primitive(i="point", j="point", x="vector of i", y="vector of i", z="vector of j", unit=("m",) * 3 + ("rad",) * 2)
def hinge(i, j, x, y, z):
    return [j - i, cd.dot(x, z), cd.dot(y, z)]


@cd.joint_motion(angle="rad")
def turning(angle):
    c, s = cd.cos(angle), cd.sin(angle)
    return ((c, -s, 0), (s, c, 0), (0, 0, 1)), (0, 0, 0)


def primitive():
    m = cd.Mechanism()
    arm = m.body("arm", position=(0.5, 0.2, 0.6))
    m.constrain("own", leaning, i=m.ground.point(), j=arm.point(), up=m.ground.vector((0, 0, 1)), length=0.8)
    return m.assemble().state["arm"].position


def by_hand():
    m = cd.Mechanism()
    pin = m.body("pin", position=(1.0, 0.7, 0.2))
    m.constrain("round", in_cylinder, p=m.ground.point(), q=pin.point(), radius=0.5)
    return m.assemble().state["pin"].position


def crank(**options):
    m = cd.Mechanism(gravity=(0.0, -9.81, 0.0))
    bar = m.body("bar", mass=1.0, inertia=0.1 * np.eye(3), orientation=euler.from_axis_angle((0, 0, 1), 0.3))
    m.revolute("axle", m.ground.frame(), bar.frame((-0.4, 0, 0)))
    return m, bar


def coupling():
    m, _ = crank()
    slide = m.body("slide", position=(0.3, 0, 0))
    m.prismatic("rail", m.ground.frame(z=(1, 0, 0)), slide.frame(z=(1, 0, 0)))
    m.couple("cam", m["axle"], m["rail"], lambda a: 0.2 * cd.sin(a) ** 3 + 0.1 * a)
    m.drive("motor", m["axle"], lambda t: 0.3 + 0.5 * t)
    return [m["rail"].coordinate(state) for state in m.move(np.linspace(0.0, 1.0, 4)).states]


def load():
    m, _ = crank()
    m.actuator("brake", m["axle"], lambda t, a, rate: -0.3 * rate * cd.exp(-(a**2)) + cd.cos(2.0 * t))
    return m.simulate(0.2, times=[0.0, 0.1, 0.2]).states[-1]["bar"].position


def rate_row():
    m = cd.Mechanism()
    skate = m.body("skate", mass=1.0, inertia=0.1 * np.eye(3))
    m.planar("ice", m.ground.frame(), skate.frame())
    m.constrain_rates("edge", blade, i=skate.point(), axis=skate.vector((0, 1, 0)))
    return m.diagnose(m.assemble().state).velocity_dof, 0.0


def shape():
    m = cd.Mechanism()
    spiral = cd.geometry.traced(lambda u: (0.5 * cd.cos(u), 0.5 * cd.sin(u), 0.1 * u), (0.0, 20.0))
    car = m.body("car", position=(0.5, 0.1, 1.3), orientation=("xyz", (0, 0, 1.5)))
    m.path("ride", car.frame(), m.ground.attach(spiral), follow="frenet")
    return m.assemble().state["car"].position


def motion():
    m = cd.Mechanism()
    one, other = m.ground.frame(z=(0, 0.6, 0.8)), m.body("arm", position=(0.1, 0.2, 0)).frame((0.3, 0, 0))
    arm = other.body
    ends = {"i": one, "j": other, "x": m.ground.vector(one.x), "y": m.ground.vector(one.y), "z": arm.vector(other.z)}
    m.constrain("own", hinge, **ends, motion=turning.between(one, other))
    m.distance("rod", arm.point((0.6, 0, 0)), m.ground.point((0.4, 0.2, 0)), 0.35)
    return m.assemble(formulation="relative").state["arm"].position


def parameters():
    m = cd.Mechanism()
    r, l = m.parameter("r", 0.2, lower=0.05), m.parameter("l", 0.4)
    crank, rod = (
        m.body("crank", orientation=euler.from_axis_angle((0, 0, 1), 0.5)),
        m.body("rod", position=(0.2, 0.1, 0)),
    )
    slider = m.body("slider", position=(0.6, 0, 0))
    m.revolute("A", m.ground.frame(x=(1, 0, 0)), crank.frame(x=(1, 0, 0)))
    m.revolute("B", crank.frame((r, 0, 0)), rod.frame())
    m.distance("C", rod.point(), slider.point(), l)
    m.prismatic("slide", m.ground.frame(z=(1, 0, 0)), slider.frame(z=(1, 0, 0)))
    m.drive("motor", m["A"], 0.5)
    m.drive("there", m["slide"], 0.65)
    return list(m.assemble(free=["r", "l"], least="nearest").state.variables.values())


CASES = (primitive, by_hand, coupling, load, rate_row, shape, motion, parameters)


def results() -> dict[str, list[float]]:
    """The numbers of every case."""
    return {case.__name__: [float(number) for number in case()] for case in CASES}


if __name__ == "__main__":
    if "interpreted" in sys.argv:
        kernels.compiles_functions = lambda: False
    found = results()
    compiled = [name for name in sys.modules if name.startswith("cardan_primitive")]
    print(json.dumps({"results": found, "compiled": compiled, "interpreted": len(tape._tapes)}))
