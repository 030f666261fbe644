"""Assembly of parts that must not overlap, judged by planes between them (tests/separation.py)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cardan as cd
from cardan import collide
from cardan.analysis import clashes, move_apart
from cardan.math import euler
from tests.separation import room

X, Y, Z = np.eye(3)
SIZE = 0.1  # [m] about that of the parts
OVERLAP = 1e-11  # [m] a verdict allows 1e-12 of the extent of a piece, and rounding


# -- placements ------------------------------------------------------------------------------------------------------


def random_shape(rng):
    a, b, c = SIZE * rng.uniform(0.3, 1.0, 3)
    return (cd.shapes.box(a, b, c), cd.shapes.cylinder(0.5 * a, b), cd.shapes.sphere(0.5 * a))[rng.integers(3)]


def placement(seed: int) -> cd.Mechanism:
    """Two to six parts, of which the first two are drawn into each other, and one that is far from all of them.

    In every other case half of them are on joints that leave room; in every fourth the ground is a half-space.
    """
    rng = np.random.default_rng(seed)
    m = cd.Mechanism(f"placement {seed}")
    count = int(rng.integers(2, 7))
    at = rng.uniform(-1.0, 1.0, (count, 3)) * SIZE * count**0.4
    at[1] = at[0] + SIZE * rng.uniform(-0.25, 0.25, 3)
    for k in range(count):
        m.body(f"part {k}", position=at[k], orientation=euler.random(rng)).attach(random_shape(rng))
    m.body("far", position=(0.0, 0.0, 100.0 * SIZE), orientation=euler.random(rng)).attach(random_shape(rng))
    for k in range(0, count, 2) if seed % 2 else ():
        body = m.bodies[f"part {k}"]
        R = np.asarray(euler.matrix(body.orientation))
        kind = rng.choice(["prismatic", "cylindrical", "planar", "spherical"])
        away, z = 3.0 * SIZE * rng.normal(size=3), rng.normal(size=3)
        if kind == "spherical":
            m.spherical(f"joint {k}", m.ground.point(at[k] + R @ away), body.point(away))
        else:
            getattr(m, kind)(f"joint {k}", m.ground.frame(at[k], z=R @ z), body.frame(z=z))
    if seed % 4 == 2:
        m.ground.attach(cd.shapes.half_space())
    m.collide("all", joined=True)
    return m


def packing(seed: int) -> cd.Mechanism:
    """Parts that cannot be apart: too much volume between six planes, a peg longer than its slot, balls in a row."""
    rng = np.random.default_rng(seed)
    m = cd.Mechanism(f"packing {seed}")
    if seed % 3 == 0:
        widths = rng.uniform(0.1, 0.3, 3)
        for z, width in zip((*np.eye(3), *-np.eye(3)), (*widths, *widths), strict=True):
            m.ground.attach(cd.shapes.half_space(), m.ground.frame(-0.5 * width * z, z=z))
        radius = 0.505 * widths.min()
        m.body("ball", position=rng.uniform(-0.5, 0.5, 3) * widths).attach(cd.shapes.sphere(radius))
        for k in range(int(rng.integers(1, 4))):
            edges = rng.uniform(0.2, 0.5, 3) * widths.min()
            m.body(f"box {k}", position=rng.uniform(-0.5, 0.5, 3) * widths).attach(cd.shapes.box(*edges))
    elif seed % 3 == 1:
        length, z = rng.uniform(0.05, 0.2), rng.normal(size=3)
        z /= np.linalg.norm(z)
        for side in (-1.0, 1.0):
            m.ground.attach(cd.shapes.half_space(), m.ground.frame(0.5 * side * length * z, z=-side * z))
        peg = m.body("peg", position=rng.uniform(-0.3, 0.3) * length * z)
        peg.attach(cd.shapes.cylinder(0.01, length * rng.uniform(1.001, 1.5)), peg.frame(z=z))
        m.prismatic("slide", m.ground.frame(z=z), peg.frame(z=z))
    else:
        count, width = int(rng.integers(2, 4)), rng.uniform(0.1, 0.3)
        for side in (-1.0, 1.0):
            wall = m.body(f"wall {side:+g}", fixed=True, position=(side * (0.5 * width + 0.01), 0, 0))
            wall.attach(cd.shapes.box(0.02, 0.5, 0.5))
        for k in range(count):
            ball = m.body(f"ball {k}", position=(rng.uniform(-0.5, 0.5) * width, 0, 0))
            ball.attach(cd.shapes.sphere(0.5 * width / count * rng.uniform(1.001, 1.2)))
            m.prismatic(f"slide {k}", m.ground.frame(z=X), ball.frame(z=X))
            m.limit(f"within {k}", f"slide {k}", lower=-0.5 * width, upper=0.5 * width)
    m.collide("all", joined=True)
    return m


def solid_of(one):
    """Of an attachment the prepared solid, and the shape, None for a plane."""
    is_plane = isinstance(one.shape, cd.shapes.solids.HalfSpace)
    return (collide.half_space(), None) if is_plane else (collide.solid(one.shape), one.shape)


def world(state, body, one):
    R_WB, p_WB = (np.eye(3), np.zeros(3)) if body.is_ground else (state[body.name].matrix, state[body.name].position)
    R = R_WB @ np.column_stack([one.frame.x, one.frame.y, one.frame.z])
    return np.array([*(p_WB + R_WB @ np.array(one.frame.origin)), *np.asarray(euler.from_matrix(R))])


def rooms(m, state):
    """By the names of two bodies the room between them [m]; the normal of the library is only one of the directions."""
    every = [(body, one) for body in (m.ground, *m.bodies.values()) for one in body.attachments]
    found = {}
    for (body_a, a), (body_b, b) in itertools.combinations(every, 2):
        if body_a is not body_b:
            poses = world(state, body_a, a), world(state, body_b, b)
            (solid_a, shape_a), (solid_b, shape_b) = solid_of(a), solid_of(b)
            hint = collide.gap(solid_a, poses[0], solid_b, poses[1]).normal
            key = body_a.name, body_b.name
            found[key] = min(found.get(key, np.inf), room(shape_a, poses[0], shape_b, poses[1], hint))
    return found


def check_placement(seed):
    m = placement(seed)
    result = m.assemble()
    assert result.ok, result.text()
    after = rooms(m, result.state)
    assert min(after.values()) >= -OVERLAP, seed
    assert np.array_equal(result.state["far"].position, m["far"].position)  # nothing is pulled together
    assert np.array_equal(result.state["far"].quaternion, m.state["far"].quaternion)
    told = {frozenset((one.a, one.b)) for one in result.touching}
    assert {frozenset(key) for key, value in after.items() if value < 1e-12 * SIZE} <= told
    assert all(abs(one.gap) < 1e-9 * SIZE for one in result.touching)


def check_packing(seed):
    m = packing(seed)
    result = m.assemble()
    assert result.status is cd.Status.OVERLAP
    assert result.worst and all(violation.name.startswith("collision of ") for violation in result.worst)
    assert result.worst[0].residual > 1e-6
    alone = m.copy()
    alone.remove("collisions")
    assert alone.diagnose(result.state).assembled  # every joint is met


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_nothing_overlaps_after_ok(first):
    for seed in range(first, first + 8):
        check_placement(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(24, 10_000, 997))
def test_nothing_overlaps_after_ok_in_many_placements(first):
    for seed in range(first, min(first + 997, 10_000)):
        check_placement(seed)


@pytest.mark.parametrize("seed", range(3))
def test_what_cannot_be_apart_is_named(seed):
    check_packing(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(3, 500, 71))
def test_what_cannot_be_apart_is_named_in_many_packings(first):
    for seed in range(first, min(first + 71, 500)):
        check_packing(seed)


# -- single laws -----------------------------------------------------------------------------------------------------


def balls(*positions, radius=SIZE):
    m = cd.Mechanism()
    for k, position in enumerate(positions):
        m.body(f"ball {k}", position=position).attach(cd.shapes.sphere(radius))
    return m


def test_two_free_balls_are_moved_apart_along_the_line_of_their_centres_by_the_least_way():
    m = balls((0.0, 0.0, 0.0), (0.12, 0.16, 0.0), radius=0.15)
    m.collide("all")
    result = m.assemble()
    a, b = (result.state[f"ball {k}"].position for k in (0, 1))
    n = np.array([0.6, 0.8, 0.0])
    assert np.allclose([a, b], [-0.05 * n, 0.25 * n], rtol=0, atol=1e-12)
    (one,) = result.touching
    assert (one.a, one.b) == ("ball 0", "ball 1")
    assert abs(one.gap) < 1e-13
    assert np.allclose(one.normal, n, rtol=0, atol=1e-12)
    assert np.allclose(one.points, [0.1 * n, 0.1 * n], rtol=0, atol=1e-12)


def test_parts_that_are_apart_are_returned_bitwise_as_without_collisions():
    m = balls((0, 0, 0), (0.5, 0, 0), (1, 0, 0))
    m.spherical("A", m.ground.point((0.1, 0.2, 0.301)), m["ball 0"].point((0.1, 0.2, 0.3)))
    alone = m.assemble()
    m.collide("all")
    result = m.assemble()
    assert result == alone and result.touching == ()


def test_a_margin_keeps_parts_apart_by_it():
    m = balls((0, 0, 0), (0.21, 0, 0))
    m.collide("all", margin=0.05)
    a, b = (m.assemble().state[f"ball {k}"].position for k in (0, 1))
    assert np.linalg.norm(b - a) == pytest.approx(0.25, abs=1e-13)


def test_the_last_set_decides():
    m = balls((0, 0, 0), (0.21, 0, 0))
    m.collide("all", margin=0.05)
    m.collide(["ball 0", "ball 1"], margin=0.02, name="near")
    a, b = (m.assemble().state[f"ball {k}"].position for k in (0, 1))
    assert np.linalg.norm(b - a) == pytest.approx(0.22, abs=1e-13)


def test_pairs_that_a_joint_connects_are_excluded_and_said():
    m = balls((0, 0, 0), (0.1, 0, 0), (0.2, 0, 0))
    m.spherical("A", m["ball 0"].point((0.05, 0, 0)), m["ball 1"].point((-0.05, 0, 0)))
    made = m.collide("all", exclude=[("ball 1", "ball 2")])
    assert made.excluded == [("ball 0", "ball 1"), ("ball 1", "ball 2")]
    assert made.without_solid == ["ground"]
    result = m.assemble()
    assert result.ok and {(one.a, one.b) for one in result.touching} == {("ball 0", "ball 2")}
    m.remove("collisions")
    m.collide("all", joined=True)
    assert m["collisions"].excluded == []


def test_parts_that_are_fixed_to_each_other_and_overlap_are_named():
    """No motion separates them, so no row is made; what only touches is no contact that may open."""
    m = cd.Mechanism()
    for name, x in (("left", 0.0), ("right", 1.0), ("over", 1.9)):
        m.body(name, fixed=True, position=(x, 0, 0)).attach(cd.shapes.box(1, 1, 1))
    m.body("free", position=(5, 0, 0)).attach(cd.shapes.sphere(1))
    m.collide("all")
    result = m.assemble()
    assert result.status == "overlap" and [one.name for one in result.worst] == ["collision of 'right' and 'over'"]
    assert [(one.a, one.b) for one in result.touching] == [("right", "over")]
    m.remove("collisions")
    m.collide("all", exclude=[("right", "over")])
    result = m.assemble()
    assert result.ok and result.iterations == 0 and not result.touching
    assert m.assemble_many([m.state]).ok.all()


def test_queries_and_collisions_leave_out_the_same_pairs():
    """Pairs that a joint, a contact or a coupling joins; not those that are fixed to each other through others."""
    m = cd.Mechanism()
    for k, name in enumerate(("one", "two", "three")):
        m.body(name, position=(k, 0, 0)).attach(cd.shapes.box(0.1, 0.1, 0.1))
    m.ground.attach(cd.shapes.box(0.1, 0.1, 0.1), m.ground.frame((0, 5, 0)))
    m.body("lid", position=(0, 0, 1)).attach(cd.shapes.sphere(0.1))
    m.body("wheel", position=(0, 0, 3)).attach(cd.shapes.sphere(0.1))
    m.revolute("A", m.ground.frame(), m["one"].frame())
    m.revolute("B", m.ground.frame((1, 0, 0)), m["two"].frame())
    m.revolute("C", m["two"].frame((1, 0, 0)), m["three"].frame())
    m.gear("G", "A", "B", ratio=-1.0)
    m.fixed("W", m["one"].frame((0, 0, 1)), m["lid"].frame())
    m.fixed("V", m["lid"].frame((0, 0, 2)), m["wheel"].frame())
    face = m["three"].attach(cd.geometry.sphere(0.1), m["three"].frame((0, 0, 2)))
    m.contact("K", face, m["wheel"].attach(cd.geometry.sphere(0.1), m["wheel"].frame((0, 0, 5))))
    made = m.collide("all")
    names = [*m.bodies, "ground"]
    left_out = {frozenset(one.bodies) for one in m.interference().left_out if len(one.bodies) == 2}
    assert left_out == {frozenset(pair) for pair in made.excluded}
    joined = {frozenset(pair) for pair in [("ground", "one"), ("ground", "two"), ("two", "three"), ("one", "two")]}
    joined |= {frozenset(pair) for pair in [("one", "lid"), ("lid", "wheel"), ("three", "wheel")]}
    assert left_out == joined
    assert m.interference().pairs == len(names) * (len(names) - 1) // 2 - len(joined)


def test_bodies_that_are_added_later_belong_to_all():
    m = balls((0, 0, 0))
    m.collide("all")
    m.body("later").attach(cd.shapes.sphere(SIZE))
    result = m.assemble()
    assert result.ok
    assert np.linalg.norm(result.state["later"].position - result.state["ball 0"].position) > 2 * SIZE * (1 - 1e-12)
    m["later"].detach(m["later"].attachments[0])
    assert m.assemble().iterations == 0


def test_a_body_is_the_union_of_its_solids():
    m = cd.Mechanism()
    dumbbell = m.body("dumbbell", fixed=True)
    for x in (-0.3, 0.3):
        dumbbell.attach(cd.shapes.sphere(SIZE), dumbbell.frame((x, 0, 0)))
    m.body("between").attach(cd.shapes.sphere(SIZE))
    m.collide("all")
    assert m.assemble().iterations == 0
    result = m.assemble({"between": ((0.25, 0.01, 0.0), (1, 0, 0, 0))})
    assert result.ok and len(result.touching) == 1
    assert np.linalg.norm(result.state["between"].position - [0.3, 0, 0]) == pytest.approx(2 * SIZE, abs=1e-13)


def test_removing_a_body_leaves_the_others():
    m = balls((0, 0, 0), (1, 0, 0), (2, 0, 0))
    m.collide(["ball 0", "ball 1", "ball 2"], exclude=["ball 2", ("ball 0", "ball 1")])
    m.remove("ball 2")
    assert m["collisions"].bodies == ("ball 0", "ball 1")
    assert m["collisions"].exclude == (("ball 0", "ball 1"),)
    m.remove("ball 1")
    assert "collisions" not in m


def test_many_starts_give_what_single_starts_give():
    m = balls((0, 0, 0), (0.1, 0, 0), (5, 0, 0))
    m.collide("all")
    starts = [m.state, m.assemble({"ball 2": ((0.05, 0.1, 0.0), (1, 0, 0, 0))}).state, m.assemble().state]
    starts.append({"ball 2": ((0.05, 0.1, 0.0), (1, 0, 0, 0))})
    many = m.assemble_many(starts)
    for k, start in enumerate(starts):
        one = m.assemble(start)
        assert np.array_equal(many.coordinates[k], one.state.coordinates) and many.status[k] == str(one.status)


def test_a_conflict_of_joints_stays_one():
    m = balls((0, 0, 0), (0.1, 0, 0))
    m.distance("short", m.ground.point(), m["ball 0"].point(), 0.1)
    m.spherical("far", m.ground.point((5, 0, 0)), m["ball 0"].point())
    m.collide("all")
    result = m.assemble()
    assert result.status is cd.Status.CONFLICT
    assert {violation.name for violation in result.worst} <= {"short", "far"}


def test_diagnose_tells_what_touches_and_the_motions_that_keep_it_closed():
    m = cd.Mechanism()
    m.ground.attach(cd.shapes.half_space())
    m.body("ball", position=(0, 0, SIZE)).attach(cd.shapes.sphere(SIZE))
    m.body("box", position=(1, 0, 0.05)).attach(cd.shapes.box(0.1, 0.1, 0.1))
    m.collide("all")
    found = m.diagnose()
    assert found.assembled and found.dof == 12
    assert {(one.a, one.b) for one in found.touching} == {("ground", "ball"), ("ground", "box")}
    assert found.dof_touching == 5 + 3  # a ball on a plane; a box that stands on a face
    assert "one-sided; 8 degrees of freedom while they stay closed" in found.text()
    low = m.diagnose(m.state.moved({"ball": ((0, 0, 0.9 * SIZE), (1, 0, 0, 0))}))
    assert not low.assembled and low.worst[0].name == "collision of 'ground' and 'ball'"
    assert low.worst[0].residual == pytest.approx(0.1 * SIZE, abs=1e-15)


REFUSED = {
    "simulate": lambda m, state: m.simulate(1.0),
    "dynamic session": lambda m, state: m.session(mode="dynamic"),
    "assemble with least=": lambda m, state: m.assemble(free=["length"], least="nearest"),
}
TOUCHED = {
    "linearize": lambda m, state: m.linearize(state),
    "solve_rates": lambda m, state: m.solve_rates(state),
    "sensitivity": lambda m, state: m.sensitivity(state, [m["ball 0"].point()]),
    "tolerances": lambda m, state: m.tolerances(state, [m["ball 0"].point()], {"idle": 0.1}, samples=10),
    "constraint_equations": lambda m, state: m.constraint_equations(),
    "jacobian by drivers": lambda m, state: m.jacobian("ball 0", state, by="drivers"),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_verbs_that_do_not_consider_collisions_refuse_them_by_name(verb):
    m = balls((0, 0, 0), (1, 0, 0))
    m.parameter("length", 1.0)
    m.collide("all", name="parts")
    with pytest.raises(cd.ModelError, match=r"collide 'parts'.*remove"):
        REFUSED[verb](m, m.state)


@pytest.mark.parametrize("verb", TOUCHED)
def test_verbs_of_first_order_refuse_states_in_which_parts_touch(verb):
    m = balls((0, 0, 0), (2 * SIZE, 0, 0))
    m.parameter("idle", 1.0)
    m.spring("a", m.ground.point((0, 0, 1)), m["ball 0"].point(), stiffness=1.0)
    m.collide("all")
    with pytest.raises(cd.ModelError, match=rf"{verb} does not.*'ball 0' and 'ball 1' touch"):
        TOUCHED[verb](m, m.state)


def test_samples_of_tolerances_in_which_parts_overlap_fail():
    """A gap of half the tolerance: of values in ±t, those beyond t/2 overlap, a quarter of them."""
    m = balls((0, 0, 0), (2.05 * SIZE, 0, 0))
    length = m.parameter("length", 0.0)
    m.revolute("A", m.ground.frame((length, 0, 0)), m["ball 0"].frame())
    m.revolute("B", m.ground.frame((2.05 * SIZE, 0, 0)), m["ball 1"].frame())
    given = m.state, [m["ball 0"].point()], {"length": 0.1 * SIZE}
    found = m.tolerances(*given, samples=200, distribution="uniform")
    assert found.failed == 0
    beyond = int((found.samples[:, 0] > 0.05 * SIZE).sum())
    assert 30 < beyond < 70
    m.collide("all", joined=True)
    assert m.tolerances(*given, samples=200, distribution="uniform").failed == beyond


def test_equations_of_one_joint_and_of_parts_that_are_apart_are_not_refused():
    m = balls((0, 0, 0), (2 * SIZE, 0, 0))
    m.revolute("A", m.ground.frame(), m["ball 0"].frame())
    m.drive("motor", m["A"], 0.0)
    m.collide("all")
    assert m.constraint_equations(joint="A").jacobian.shape == (6, 12)
    assert m.jacobian("ball 0").shape == (6, 12)  # by the poses of the bodies: no constraint is used
    apart = m.state.moved({"ball 1": ((3 * SIZE, 0, 0), (1, 0, 0, 0))})
    assert m.constraint_equations(apart).jacobian.shape == (7, 12)
    assert m.jacobian("ball 0", apart, by="drivers").ravel() == pytest.approx([0, 0, 0, 0, 0, 1], abs=1e-12)


WRONG = {
    "no list": (lambda m: m.collide("ball 0"), "it must be 'all', or a list"),
    "one body": (lambda m: m.collide(["ball 0"]), "fewer than two bodies"),
    "an unknown body": (lambda m: m.collide(["ball 0", "bal 1"]), "did you mean 'ball 1'|ball 1"),
    "a body without a solid": (lambda m: m.collide(["ball 0", m.ground]), "'ground', which has no solid"),
    "a negative margin": (lambda m: m.collide("all", margin=-1.0), "margin is -1"),
    "a wrong pair": (lambda m: m.collide("all", exclude=[("ball 0",)]), "exclude must be a list of bodies and"),
    "a taken name": (lambda m: m.collide("all", name="ball 0"), "there is a body of that name"),
    "a body of another": (lambda m: m.collide([balls((0, 0, 0))["ball 0"], "ball 1"]), "another mechanism"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused_and_change_nothing(case):
    m = balls((0, 0, 0), (1, 0, 0))
    before = m.description()
    call, message = WRONG[case]
    with pytest.raises(cd.ModelError, match=message):
        call(m)
    assert m.description() == before


# -- motions ---------------------------------------------------------------------------------------------------------


def slider(thickness):
    """A box of 0.2 m that is driven along x at 1 m/s towards a plate at x = 1 m."""
    m = cd.Mechanism()
    m.body("box").attach(cd.shapes.box(0.2, 0.2, 0.2))
    m.prismatic("slide", m.ground.frame(z=X), m["box"].frame(z=X))
    m.drive("motor", "slide", lambda t: 1.0 * t)
    m.body("plate", position=(1.0, 0, 0), fixed=True).attach(cd.shapes.box(thickness, 1, 1))
    return m


@pytest.mark.parametrize("thickness", [0.1, 1e-4])
def test_a_motion_ends_where_parts_meet_and_does_not_step_over_thin_ones(thickness):
    m = slider(thickness)
    m.collide("all")
    motion = m.move([0.0, 0.5, 2.0, 3.0])
    assert motion.status is cd.MotionStatus.COLLISION and list(motion.times) == [0.0, 0.5]
    assert "'box' and 'plate' meet" in motion.reason
    assert motion.state.time == pytest.approx(0.9 - 0.5 * thickness, abs=1e-9)
    assert m.diagnose(motion.state, tolerance=1e-9).touching
    back = m.move([3.0, 2.0, 0.0], motion.state)
    assert back.status is cd.MotionStatus.COLLISION
    assert back.state.time == pytest.approx(1.1 + 0.5 * thickness, abs=1e-9)


def test_a_motion_keeps_a_margin_and_passes_what_is_excluded():
    m = slider(0.1)
    m.collide("all", margin=0.05)
    assert m.move([0.0, 2.0]).state.time == pytest.approx(0.8, abs=1e-9)
    m.remove("collisions")
    m.collide("all", exclude=["plate"])
    assert m.move([0.0, 2.0]).ok


def test_a_motion_that_touches_nothing_is_that_without_collisions():
    m = slider(0.1)
    alone = m.move([0.0, 0.3, 0.8])
    m.collide("all")
    motion = m.move([0.0, 0.3, 0.8])
    assert motion.ok and all(a == b for a, b in zip(motion.states, alone.states, strict=True))


def test_a_motion_does_not_begin_with_an_overlap():
    m = slider(0.1)
    m.collide("all")
    assert m.move([1.0, 2.0]).status is cd.MotionStatus.NOT_ASSEMBLED


def test_a_motion_ends_at_a_half_space_and_half_spaces_that_move_are_refused():
    """A ball goes down an incline with 2 m/s: it meets the ground when its centre is a radius above it."""
    m = cd.Mechanism()
    ball = m.body("ball", position=(0, 0, 1))
    ball.attach(cd.shapes.sphere(SIZE))
    m.prismatic("slide", m.ground.frame((0, 0, 1), z=(1, 0, -1)), ball.frame(z=(1, 0, -1)))
    m.ground.attach(cd.shapes.half_space(), m.ground.frame(z=(0.1, 0, 1)))
    m.drive("motor", "slide", lambda t: 2.0 * t)
    m.collide("all", joined=True)
    motion = m.move(np.linspace(0.0, 1.0, 5))
    n = np.array([0.1, 0, 1]) / np.hypot(0.1, 1)
    met = (n[2] - SIZE) / (2.0 * n @ np.array([-1, 0, 1]) / np.sqrt(2.0))
    assert motion.status is cd.MotionStatus.COLLISION and motion.state.time == pytest.approx(met, abs=1e-9)
    m["ball"].attach(cd.shapes.half_space(), m["ball"].frame((0, 0, 9)))
    with pytest.raises(cd.ModelError, match=r"body 'ball' has a half-space; attach it to the ground"):
        m.move([0.0, 0.1])


def test_a_plane_is_no_half_space_and_the_way_out_is_named():
    m = balls((0, 0, 1))
    wheel = m.body("wheel", position=(3, 0, 0.5))
    m.wheel("rolls", wheel.frame(z=Y), 0.5)  # on a plane of its own
    m.ground.attach(cd.shapes.sphere(SIZE), m.ground.frame((9, 9, 9)))
    m.collide("all")
    assert m.assemble().ok
    m.ground.attach(cd.geometry.plane())
    with pytest.raises(cd.ModelError, match=r"'ground' has a plane, which has no inside; attach cd.shapes.half_space"):
        m.assemble()


def test_a_motion_that_is_stopped_keeps_what_was_compared(monkeypatch):
    """Ctrl-C returns what was reached, and max_seconds is for the whole call, also while clashes are sought."""
    m = slider(0.1)
    m.collide("all")
    given = []

    def clashes_of(*arguments):
        given.append(arguments[4])
        return clashes.clashes(*arguments)

    def interrupt(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(move_apart, "clashes", clashes_of)
    assert m.move([0.0, 0.3, 0.8], max_seconds=60.0).ok
    assert 0.0 < given[0] < 60.0
    monkeypatch.setattr(clashes._Search, "_decided", interrupt)
    stopped = m.move([-3.0, -2.5, 0.8])
    assert stopped.status is cd.MotionStatus.INTERRUPTED and "it was stopped" in stopped.reason
    assert list(stopped.times) == [-3.0, -2.5] and stopped.state == stopped.states[-1]
