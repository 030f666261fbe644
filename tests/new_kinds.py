"""A joint, a load and a shape that the library does not have, each added in two places; a plugin of pytest.

``test_new_kinds.py`` runs the laws of all kinds with them: ``pytest -p tests.new_kinds -k "slot or dashpot or …"``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

import numpy as np

from cardan.constraints import primitives
from cardan.dynamics import loads
from cardan.dynamics.loads import Action, load_kind
from cardan.joints import REGISTRY
from cardan.joints.coordinates import about_z, along_x, coordinate
from cardan.joints.lower_pairs import axes_aligned
from cardan.joints.registry import joint_kind
from cardan.quantities import InSI, Length
from cardan.shapes.registry import MAKERS, in_files, maker
from cardan.shapes.shape import SEGMENTS, Properties, Shape
from cardan.shapes.solids import lathe
from cardan.system import check
from cardan.system.parts import Frame
from cardan.system.relations import Relation
from fuzz.geometry import Z, rotation
from fuzz.geometry import length as size_of
from fuzz.oracles.joints import JOINTS, Pose, off_axis
from fuzz.oracles.joints import Row as JointRow

if "slot" not in REGISTRY:  # the first place: the function with its decorator

    @joint_kind(displacement=along_x, angle=about_z)
    def slot(a: Frame, b: Frame) -> list[Relation]:
        """A pin b in a straight slot of a along x: 4 equations.  Coordinates: displacement, angle."""
        across = [Relation(primitives.dot_2, (a.axis(k), a.feature(), b.feature()), (0.0,)) for k in "yz"]
        return [*across, axes_aligned(a, b)]

    @load_kind("point", "point")
    def dashpot(a: object, b: object, *, damping: InSI) -> Action:
        """A dashpot between two points: −damping·ẋ, where x is their distance."""
        return loads._linear(coordinate(a, b, "distance"), damping=float(damping))  # type: ignore[arg-type]

    @in_files
    @dataclass(frozen=True, slots=True)
    class Cone(Shape):
        """Radius r, height h [m] along z, its base on z = 0: V = π r² h/3, J_zz = 3/10 V r²."""

        radius: Length
        height: Length

        def properties(self):
            r, h = self.radius, self.height
            volume = np.pi * r * r * h / 3
            across = 3 / 80 * volume * (4 * r * r + h * h)
            return Properties(volume, np.array([0, 0, h / 4]), np.diag([across, across, 0.3 * volume * r * r]))

        def triangles(self, segments=SEGMENTS):
            return lathe(np.array([(0.0, 0.0), (self.radius, 0.0), (0.0, self.height)]), segments)

    @maker
    def cone(radius, height):
        """A cone along z with its base on z = 0; radius, height [m]."""
        return Cone(check.positive(radius, "the radius of a cone"), check.positive(height, "the height of a cone"))


def slot_pose(rng):
    x, angle = rng.uniform(-2, 2), rng.uniform(-np.pi, np.pi)
    return Pose(np.array([x, 0.0, 0.0]), rotation(Z, angle), {"displacement": x, "angle": angle})


# the second place: a row of independent formulas
JOINTS["slot"] = JointRow(4, 2, slot_pose, lambda d, R: (size_of(d[1:]), off_axis(R)), one_sided=True)


def dashpot_between_points(rig):
    a, b, c = rig.place("a"), rig.place("b"), rig.number()
    rig.m.dashpot(rig.name, a.point, b.point, damping=c)
    return along_line(a, b, lambda x, rate: -c * rate)


from fuzz.oracles.loads import LOADS, along_line  # noqa: E402  (it imports Mechanism, which must know the new kinds)
from fuzz.oracles.loads import Row as LoadRow  # noqa: E402

LOADS["dashpot"] = LoadRow((dashpot_between_points,))

from fuzz.oracles.shapes import SHAPES  # noqa: E402
from fuzz.oracles.shapes import Row as ShapeRow  # noqa: E402

SOLID = np.pi / 3  # volume of a cone of radius and height 1 m
UNIT_CONE = (MAKERS["cone"](1, 1), SOLID, [0, 0, 0.25], [SOLID * 3 / 16, SOLID * 3 / 16, SOLID * 0.3])
SHAPES["cone"] = ShapeRow({"cone": MAKERS["cone"](0.3, 0.8)}, [UNIT_CONE])

import cardan as cd  # noqa: E402
from cardan.files import schema, writer  # noqa: E402
from cardan.view.places import Form, look_of  # noqa: E402
from cardan.view.scene import scene  # noqa: E402


def scotch_yoke():
    """A crank whose pin moves in the slot of a yoke, which slides across it."""
    m = cd.Mechanism("scotch yoke")
    crank, yoke = m.body("crank", mass=1.0, inertia=np.eye(3)), m.body("yoke", position=(0.3, 0, 0), mass=1.0)
    m.revolute("A", m.ground.frame(), crank.frame())
    m.prismatic("slide", m.ground.frame(z=(1, 0, 0), x=(0, 1, 0)), yoke.frame(z=(1, 0, 0), x=(0, 1, 0)))
    m.slot("slot", yoke.frame(z=(0, 0, 1), x=(0, 1, 0)), crank.frame((0.3, 0, 0)))
    m.dashpot("dashpot", m.ground.point((1, 0, 0)), yoke.point(), damping=2.5)
    return m


def test_slot_moves_as_a_scotch_yoke_does():
    m = scotch_yoke()
    m.drive("motor", m["A"], lambda t: t)
    motion = m.move(np.linspace(0.0, 6.0, 25))
    assert motion.ok, motion.text()
    for t, state in zip(motion.times, motion.states, strict=True):
        assert abs(state["yoke"].position[0] - 0.3 * np.cos(t)) < 1e-12
        assert abs(m["slot"].coordinate(state, "displacement") - 0.3 * np.sin(t)) < 1e-12


def test_slot_and_dashpot_are_in_files_and_their_schema(tmp_path):
    m = scotch_yoke()
    for units in ({}, {"length": "mm", "angle": "deg"}):
        text = writer.dumps(m, units=units)
        (tmp_path / "model.cardan.toml").write_text(text)
        assert cd.load(tmp_path / "model.cardan.toml") == m
        document = tomllib.loads(text)
        assert document["joints"]["slot"]["kind"] == "slot"
        assert document["loads"]["dashpot"]["damping"] == 2.5
    kinds = {one["properties"]["kind"]["const"]: one for one in _branches(schema.schema())}
    assert kinds["slot"]["required"] == ["kind", "a", "b"] and "pin" in kinds["slot"]["description"]
    assert kinds["dashpot"]["required"] == ["kind", "a", "b", "damping"]
    solids = schema.schema()["properties"]["bodies"]["additionalProperties"]["properties"]["shapes"]["items"]["anyOf"]
    (cone,) = [one for one in solids if one["properties"].get("kind") == {"const": "cone"}]
    assert list(cone["properties"])[:3] == ["kind", "radius", "height"]


def _branches(made):
    return [*made["properties"]["joints"]["additionalProperties"]["anyOf"],
            *made["properties"]["loads"]["additionalProperties"]["anyOf"]]  # fmt: skip


def test_slot_is_drawn_as_a_rail_along_x():
    m = scotch_yoke()
    assert look_of(m["slot"]) == (Form.RAIL, 0, 0)
    drawn = scene(m, m.assemble().state)
    assert all(part.meshes for part in drawn.parts)


def test_slot_dashpot_and_cone_are_in_types_and_documents():
    from docs import generate

    stub = generate.stub()
    assert "def slot(self, name: str, /, a: Frame, b: Frame) -> Joint:" in stub
    assert "def dashpot(self, name: str, /, a: object, b: object, *, damping: InSI) -> Load:" in stub
    row = "| `slot` | frame a, frame b | 4 | 2: `displacement`, `angle` | a pin b in a straight slot of a along x |"
    assert row in generate.document("docs/vocabulary.md")
    assert "| `dashpot` | point a, point b, *, damping | a dashpot between two points: " in generate.load_table()
    assert "| `cone` | radius, height | a cone along z with its base on z = 0; radius, height [m] |" in (
        generate.shape_table()
    )
    assert "import cone as cone" in generate.shapes_stub()
    assert f"{len(JOINTS)} kinds of joints" in generate.readme()


def test_slot_is_drawn_by_the_fuzzer_and_closes_loops_of_joint_coordinates():
    from fuzz.generate import generate
    from fuzz.judge import judge, poses_of, relative_miss
    from tests.coordinates.test_relative import CUT_ONLY, random_mechanism

    drawn = [generate(0, k) for k in range(300)]
    cases = [case for case in drawn if any(joint.kind == "slot" for joint in case.joints)]
    assert len(cases) >= 5
    for case in cases:
        assert relative_miss(case, poses_of(case.reference)) < 1e-10, case.label
    for case in cases[:5]:
        assert not judge(case).kinds, case.label
    assert "slot" in CUT_ONLY
    assert any(joint.kind.name == "slot" for seed in range(10) for joint in random_mechanism(seed).joints.values())
