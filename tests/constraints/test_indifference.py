"""Frame indifference of users' equations, determined from the graph, also if it is violated only locally."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd


def made(function, **kinds):
    return cd.primitive(**(kinds or {"i": "point", "j": "point"}))(function)


KNOW_NOTHING = {
    "distance": made(lambda i, j: cd.norm(j - i) - 1.0),
    "by hand": made(lambda i, j: cd.sqrt((j.x - i.x) ** 2 + (j.y - i.y) ** 2 + (j.z - i.z) ** 2) - 1.0),
    "gap": made(lambda i, j: j - i),
    "stretched gap": made(lambda i, j: (j - i) * cd.exp(cd.dot(j - i, j - i))),
    "unit": made(lambda i, j: (j - i) / cd.norm(j - i)),
    "clipped": made(lambda i, j: cd.norm(j - i) - cd.clip(cd.dot(j - i, j - i), 1.0, 2.0)),
    "height": made(lambda i, j, u: cd.dot(u, j - i), i="point", j="point", u="vector of i"),
    "volume": made(lambda i, j, u: cd.dot(cd.cross(u, j - i), j - 2 * i + i), i="point", j="point", u="vector of i"),
    "orientations": made(lambda a, b: 2.0 * cd.rotation_vector(a, b), a="orientation", b="orientation"),
    "angle": made(lambda a, b: b - cd.sin(a), a="angle", b="angle"),
}
KNOW_OF_THE_WORLD = {
    "level": made(lambda i, j: j.z - i.z),
    "origin": made(lambda i, j: cd.norm(i + j) - 1.0),
    "bump": made(lambda i, j: cd.norm(j - i) - 1.0 + 0.5 * cd.exp(-1e6 * (i.z - 0.3) ** 2)),
    "wall": made(lambda i, j: cd.norm(j - i) - cd.tanh(1e9 * ((j - i).z - 1e3))),
    "step": made(lambda i, j: cd.norm(j - i) - cd.clip((j - i).z, 5.0, 8.0)),
    "axis": made(lambda i, j: cd.dot(j - i, (0.0, 0.0, 1e-30)) + cd.norm(j - i) - 1.0),
    "mixed": made(lambda i, j: [(j - i).x, (j - i).z, (j - i).y]),
    "mirror": made(lambda i, j: [(j - i).x, (j - i).y, -(j - i).z]),
    "two of three": made(lambda i, j: [(j - i).x, (j - i).y]),
    "a power of two": made(lambda i, j: cd.norm(j - i) - 1.0 + (2.0**61 * i.z - i.z) * 2.0**-61),
    "another": made(lambda i, j: cd.norm(j - i) - 1.0 + (2.0**89 * i.z - i.z) * 2.0**-89),
    "zero divisor": made(lambda i, j: cd.norm(j - i) / (cd.dot(j - i, j - i) - cd.dot(i - j, i - j) + 0.0 * i.x)),
}


@pytest.mark.parametrize("name", KNOW_NOTHING)
def test_relations_between_features_are_indifferent(name):
    assert KNOW_NOTHING[name].indifferent


@pytest.mark.parametrize("name", KNOW_OF_THE_WORLD)
def test_a_local_dependence_on_the_world_frame_is_detected(name):
    assert not KNOW_OF_THE_WORLD[name].indifferent


@pytest.mark.parametrize("formulation", ["manifold", "relative", "relative_euler_parameters"])
def test_a_local_world_constraint_is_satisfied_in_joint_coordinates(formulation):
    m = cd.Mechanism()
    a = m.body("a", position=(0.1, 0, 0.3))
    b, c = m.body("b", position=(0, 0, 3)), m.body("c", position=(0, 0.2, 3))
    m.prismatic("slide", m.ground.frame(z=(1, 0, 0)), a.frame((0, 0, -0.3), z=(1, 0, 0)))
    m.revolute("first", a.frame(z=(0, 1, 0)), b.frame((1, 0, 0), z=(0, 1, 0)))
    m.revolute("second", b.frame(z=(0, 1, 0)), c.frame((1, 0, 0), z=(0, 1, 0)))
    m.constrain("bump", KNOW_OF_THE_WORLD["bump"], i=a.point(), j=c.point((0.3, 0, 0)))
    result = m.assemble(formulation=formulation)
    assert result.ok, result.text()
    i = np.array(result.state["a"].position)
    j = np.array(result.state["c"].point((0.3, 0, 0)))
    assert np.linalg.norm(j - i) == pytest.approx(1.0 - 0.5 * np.exp(-1e6 * (i[2] - 0.3) ** 2), abs=1e-10)
