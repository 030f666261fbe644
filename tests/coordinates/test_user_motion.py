"""Joints of the user's own as limbs of the tree: A″(q) and d″(q), traced; equal to the built-in joints they repeat."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations, relative, tree
from layers import sampled
from mechanisms import random_quaternion, unit
from own_functions import hinge, turning

FORMS = ["relative", "relative_euler_parameters"]
DIFFERENCE = 1e-9


UNITS = ("m", "m", "rad", "rad", "m")


@cd.primitive(
    i="point", j="point", x="vector of i", y="vector of i", w="vector of i", z="vector of j", q="angle", unit=UNITS
)
def thread(i, j, x, y, w, z, q, *, lead):
    d = j - i
    return [cd.dot(x, d), cd.dot(y, d), cd.dot(x, z), cd.dot(y, z), cd.dot(w, d) - lead * q]


@cd.joint_motion(angle="rad")
def helix(angle, *, lead):
    return (cd.cos(0.5 * angle), 0, 0, cd.sin(0.5 * angle)), (0, 0, lead * angle)


@cd.primitive(i="point", j="point", x="vector of i", y="vector of i", z="vector of j", unit=("m", "m", "rad", "rad"))
def sleeve(i, j, x, y, z):
    d = j - i
    return [cd.dot(x, d), cd.dot(y, d), cd.dot(x, z), cd.dot(y, z)]


@cd.joint_motion(shift="m", angle="rad")
def sliding_and_turning(shift, angle):
    c, s = cd.cos(angle), cd.sin(angle)
    return ((c, -s, 0), (s, c, 0), (0, 0, 1)), (0, 0, shift)


@cd.primitive(
    i="point", j="point", x="vector of i", y="vector of i", w="vector of i", z="vector of j", q="angle", unit=UNITS
)
def cam(i, j, x, y, w, z, q, *, lift):
    d = j - i
    return [cd.dot(x, d), cd.dot(y, d), cd.dot(x, z), cd.dot(y, z), cd.dot(w, d) - lift * cd.sin(2.0 * q)]


@cd.joint_motion(angle="rad")
def cam_motion(angle, *, lift=0.2):
    c, s = cd.cos(angle), cd.sin(angle)
    return ((c, -s, 0), (s, c, 0), (0, 0, 1)), (0, 0, lift * cd.sin(2.0 * angle))


def axes(a, b):
    """What the primitives above read of two frames."""
    one, other = a.body, b.body
    return {"i": a, "j": b, "x": one.vector(a.x), "y": one.vector(a.y), "z": other.vector(b.z)}


def own(m, kind, name, a, b, with_motion=True):
    """A joint of the user's own, or the built-in one that it repeats."""
    if kind == "revolute":
        m.constrain(name, hinge, **axes(a, b), **({"motion": turning.between(a, b)} if with_motion else {}))
    elif kind == "cylindrical":
        motion = {"motion": sliding_and_turning.between(a, b)} if with_motion else {}
        m.constrain(name, sleeve, **axes(a, b), **motion)
    else:
        angle = cd.coordinate(a, b, "angle")
        w = a.body.vector(a.z)
        if kind == "screw":
            motion = {"motion": helix.between(a, b, lead=0.05)} if with_motion else {}
            m.constrain(name, thread, **axes(a, b), w=w, q=angle, lead=0.05, **motion)
        else:
            motion = {"motion": cam_motion.between(a, b)} if with_motion else {}
            m.constrain(name, cam, **axes(a, b), w=w, q=angle, lift=0.2, **motion)


KINDS = ("revolute", "cylindrical", "screw", "cam")


def frames(a, b, rng):
    """Frames on two bodies, anywhere on them."""
    return [
        body.frame(rng.uniform(-1, 1, 3), z=unit(rng.normal(size=3)), x=unit(rng.normal(size=3))) for body in (a, b)
    ]


def random_mechanism(seed, with_motion=True):
    """A tree with joints of the user's own in both directions, balls among them, and loops."""
    rng = np.random.default_rng([seed, 3])
    m = cd.Mechanism()
    made = [m.ground]
    for k in range(9):
        body = m.body(f"body {k}", position=rng.uniform(-1, 1, 3), orientation=random_quaternion(rng))
        parent = made[int(rng.integers(len(made)))]
        a, b = frames(parent, body, rng)
        if k % 3 == 2:
            getattr(m, ("spherical", "universal", "prismatic")[(seed + k) % 3])(f"limb {k}", a, b)
        else:
            ends = (b, a) if rng.random() < 0.5 else (a, b)
            own(m, KINDS[(seed + k) % 4], f"limb {k}", *ends, with_motion)
        made.append(body)
    for k in range(5):
        a, b = frames(*(made[i] for i in rng.choice(len(made), 2, replace=False)), rng)
        kind = ("distance", "spherical", "universal", "point_in_plane", "revolute")[k]
        getattr(m, kind)(f"loop {k}", a, b, *([1.2] if kind == "distance" else []))
    return m


def coordinates(system, form, seed):
    rng = np.random.default_rng(seed)
    q = np.array([[*rng.uniform(-1, 1, 3), *random_quaternion(rng)] for _ in system.names]).ravel()
    q = np.append(q, np.zeros(len(system.counted_angles)))
    x = formulations.enter(system, form, formulations.with_angles_of_poses(system, q))
    if relative.FORMULATIONS[form]:
        at = 0
        for limb in tree.spanning_tree(system).limbs:
            at += limb.motion.coordinates()
            if limb.motion.rotation == tree.FREE.rotation:
                x[at - 4 : at] *= rng.uniform(0.8, 1.25)  # off the unit sphere, where the form is exact too
    return x


def first_difference(function, h=1e-3):
    """Five points."""
    f = [function(t) for t in (-2 * h, -h, h, 2 * h)]
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@sampled("seed", range(6), 2)
def test_the_jacobian_is_the_derivative_along_retract(seed, form):
    system = random_mechanism(seed).system
    grown = tree.spanning_tree(system)
    assert len(grown.user_motions) >= 4
    problem = formulations.problem(system, form)
    x = coordinates(system, form, seed)
    f, J = problem.jacobian(x)
    columns = [
        first_difference(lambda t, v=v: problem.residual(problem.retract(x, t * v))) for v in np.eye(problem.unknowns)
    ]
    size = max(1.0, np.abs(J).max())
    assert np.abs(J - np.column_stack(columns)).max() <= DIFFERENCE * size
    assert f.size < formulations.problem(random_mechanism(seed, False).system, form).rows


def test_these_mechanisms_have_joints_of_ones_own_in_both_directions():
    found = [
        one for seed in range(6) for one in tree.spanning_tree(random_mechanism(seed).system).user_motions.values()
    ]
    assert {reverse for _, reverse in found} == {False, True}
    assert {motion.motion.name for motion, _ in found} == {"turning", "sliding_and_turning", "helix", "cam_motion"}


@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMS, "relative_virtual_rotation"])
@pytest.mark.parametrize("seed", range(3))
def test_every_pose_of_coordinates_satisfies_the_equations_and_gives_these_coordinates_again(seed, form):
    system = random_mechanism(seed).system
    x = coordinates(system, "relative", seed)
    q = np.empty(7 * len(system.names) + len(system.counted_angles))
    formulations.leave(system, form, x, q)
    q[7 * len(system.names) :] = 0.0  # angles of the poses alone
    f = formulations.problem(system, "manifold").residual(formulations.with_angles_of_poses(system, q))
    limbs = {name for name in tree.spanning_tree(system).names if name}
    at = 0
    for row in system.rows:
        if row.constraint in limbs:
            assert np.abs(f[at : at + row.primitive.rows]).max() <= 1e-12
        at += row.primitive.rows
    again = formulations.enter(system, form, formulations.with_angles_of_poses(system, q))
    new = np.empty_like(q)
    formulations.leave(system, form, again, new)
    poses = 7 * len(system.names)
    assert np.abs(new - q)[:poses].max() <= 1e-12


def loop(built_in, kinds, reverse=False):
    """A closed chain with as many coordinates as equations; joints of the kinds, by the library or by the user."""
    rng = np.random.default_rng(5)
    m = cd.Mechanism()
    parts = [m.ground, *(m.body(f"b{k}", position=rng.uniform(-1, 1, 3)) for k in range(len(kinds)))]
    for k, kind in enumerate([*kinds, "spherical"]):
        a, b = parts[k], parts[(k + 1) % len(parts)]
        at, z, x = rng.uniform(-1, 1, 3), unit(rng.normal(size=3)), unit(rng.normal(size=3))
        ends = [body.frame(at - (0 if body.is_ground else np.array(body.position)), z=z, x=x) for body in (a, b)]
        ends = ends[::-1] if reverse else ends
        if kind == "spherical":
            m.spherical("closing", *ends)
        elif built_in:
            getattr(m, kind)(f"j{k}", *ends, **({"pitch": 0.05 * 2 * np.pi} if kind == "screw" else {}))
        else:
            own(m, kind, f"j{k}", *ends)
    for body in parts[1:]:
        body.position = np.array(body.position) + 0.02 * rng.normal(size=3)
        body.orientation = unit(np.array([1.0, 0, 0, 0]) + 0.02 * rng.normal(size=4))
    return m


LOOPS = [("revolute", "screw", "revolute"), ("cylindrical", "screw"), ("screw", "cylindrical")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kinds", LOOPS)
def test_joints_of_ones_own_give_the_poses_of_the_built_in_ones(kinds, reverse, form):
    made = [loop(built_in, kinds, reverse) for built_in in (True, False)]
    a, b = (m.assemble(formulation=form, method="newton") for m in made)
    assert a.ok and b.ok and b.formulation == form
    assert a.iterations >= 1 and b.iterations >= 1
    assert np.abs(a.state.coordinates - b.state.coordinates).max() <= 1e-11
    problems = [formulations.problem(m.system, form) for m in made]
    assert problems[0].unknowns == problems[1].unknowns and problems[0].rows == problems[1].rows


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kinds", LOOPS)
def test_the_jacobian_is_that_of_the_built_in_joints_to_rounding(kinds, reverse):
    """At one pose of the tree.  The sign of a coordinate may differ: that of a built-in joint is counted from the
    parent."""
    form = "relative_euler_parameters"  # unknowns are changes of coordinates
    systems = [loop(built_in, kinds, reverse).system for built_in in (True, False)]
    x = coordinates(systems[1], "relative", 7)
    q = np.empty(7 * len(systems[1].names) + len(systems[1].counted_angles))
    formulations.leave(systems[1], form, x, q)
    found = []
    for system in systems:
        posed = formulations.to_reference(system, formulations.from_reference(systems[1], q))  # other reference points
        entered = formulations.enter(system, form, posed)
        found.append(formulations.problem(system, form).jacobian(entered))
    (f, J), (own_f, own_J) = found
    assert np.abs(f - own_f).max() <= 1e-12
    signs = np.sign(np.sum(J * own_J, axis=0))
    assert J.shape == own_J.shape and np.abs(J - own_J * signs).max() <= 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_a_cam_of_ones_own_assembles_and_is_solved_from_many_starts(form):
    """A follower on a helical cam holds a ball on a rod: in every start the equations of the cam hold."""
    m = cd.Mechanism()
    follower, rod = m.body("follower", position=(0, 0, 0.1)), m.body("rod", position=(1.0, 0, 0.5))
    own(m, "cam", "cam", m.ground.frame(), follower.frame())
    m.spherical("ball", follower.point((0.5, 0, 0)), rod.point((-0.5, 0, 0)))
    m.distance("hold", rod.point((0.5, 0, 0)), m.ground.point((1.0, 0.6, 0.4)), 0.3)
    result = m.assemble(formulation=form)
    assert result.ok and tree.spanning_tree(m.system).joints[:1] == ("cam",)
    angle = cd.coordinate(m.ground.frame(), follower.frame(), "angle").value(result.state)
    assert abs(result.state["follower"].position[2] - 0.2 * np.sin(2 * angle)) <= 1e-11
    rng = np.random.default_rng(0)
    starts = [m.state.moved({b: (rng.uniform(-1, 1, 3), random_quaternion(rng)) for b in m.bodies}) for _ in range(8)]
    batch = m.assemble_many(starts, formulation=form)
    alone = [m.assemble(start, formulation=form) for start in starts]
    assert batch.ok.all() and all(np.array_equal(batch.state(k).coordinates, one.state.coordinates)
                                  for k, one in enumerate(alone))  # fmt: skip


def test_a_screw_of_ones_own_keeps_its_turns():
    m = cd.Mechanism()
    nut = m.body("nut", position=(0, 0, 0.0))
    a, b = m.ground.frame(), nut.frame()
    motion = helix.between(a, b, lead=0.05, search={"angle": (-20, 20)})
    w, q = m.ground.vector(0, 0, 1), cd.coordinate(a, b, "angle")
    m.constrain("thread", thread, **axes(a, b), w=w, q=q, lead=0.05, motion=motion)
    m.drive("hand", cd.coordinate(m.ground.frame(), nut.frame(), "angle"), lambda t: 4 * cd.pi * t)
    result = m.assemble(formulation="relative", time=1.0)
    assert result.ok
    np.testing.assert_allclose(result.state["nut"].position, (0, 0, 0.05 * 4 * np.pi), atol=1e-12)


def test_motions_are_kept_in_copies_and_compared():
    m = random_mechanism(1)
    assert copy.deepcopy(m) == m and pickle.loads(pickle.dumps(m)) == m
    assert tree.spanning_tree(pickle.loads(pickle.dumps(m)).system).joints == tree.spanning_tree(m.system).joints
    assert random_mechanism(1, with_motion=False) != m
    with pytest.raises(cd.ModelError, match="its motion is a function of your own; omit motion="):
        m.save("never.cardan.toml")


@cd.joint_motion(angle="rad")
def wrong_way(angle):
    c, s = cd.cos(angle), cd.sin(angle)
    return ((c, -s, 0), (s, c, 0), (0, 0, 1)), (0.1 * s, 0, 0)


@cd.joint_motion(angle="rad")
def no_rotation(angle):
    return ((1, angle, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0)


@pytest.mark.slow
def test_a_motion_that_does_not_satisfy_its_equations_is_refused_by_name():
    m = cd.Mechanism()
    a, b = m.ground.frame(), m.body("b", position=(0.1, 0, 0)).frame()
    m.constrain("J", hinge, **axes(a, b), motion=wrong_way.between(a, b))
    assert m.assemble().ok  # formulations by pose do not use it
    with pytest.raises(cd.ModelError, match="'J': the motion 'wrong_way' does not satisfy the equations of 'hinge'"):
        m.assemble(formulation="relative")
    with pytest.raises(cd.ModelError, match="'no_rotation': A is not a rotation at the coordinates"):
        no_rotation.between(a, b)


def test_wrong_motions_are_refused():
    m = cd.Mechanism()
    b, c = m.body("b"), m.body("c")
    a = m.ground.frame()

    def refused(message, motion, ends=None):
        with pytest.raises(cd.ModelError, match=message):
            m.constrain("J", hinge, **axes(*(ends or (a, b.frame()))), motion=motion)
        assert not m.joints

    refused("it must be made with @cd.joint_motion", turning)
    refused("between '3'|between 3", turning.between(3, b.frame()))
    refused("must be between the same two bodies", turning.between(a, c.frame()))
    refused("has 2 coordinates, and there are 5 equations", sliding_and_turning.between(a, b.frame()))
    with pytest.raises(cd.ModelError, match="has no parameter 'leed'; it has lead"):
        helix.between(a, b.frame(), leed=1.0)
    with pytest.raises(cd.ModelError, match="was not given its parameter 'lead'"):
        helix.between(a, b.frame())
    with pytest.raises(cd.ModelError, match="must be a finite number"):
        helix.between(a, b.frame(), lead=float("nan"))
    with pytest.raises(cd.ModelError, match=r"must be \{coordinate: \(lower, upper\)\}, of 'angle'"):
        helix.between(a, b.frame(), lead=1.0, search={"angel": (0, 1)})
    with pytest.raises(cd.ModelError, match="the lower bound must be below"):
        helix.between(a, b.frame(), lead=1.0, search={"angle": (1, 0)})
    with pytest.raises(cd.ModelError, match="each must be 'm' or 'rad', and lengths come first"):
        cd.joint_motion(angle="rad", shift="m")(lambda angle, shift: 0)
    with pytest.raises(cd.ModelError, match=r"the coordinates .'angle'. are declared"):
        cd.joint_motion(angle="rad")(lambda q: 0)
    with pytest.raises(cd.ModelError, match="9 numbers of a rotation and 2 of a place"):
        cd.joint_motion(q="rad")(lambda q: (((q, 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0)))
    with pytest.raises(cd.ModelError, match="does not depend on its coordinates"):
        cd.joint_motion(q="rad")(lambda q: ((1, 0, 0, 0), (0, 0, 0)))
    with pytest.raises(cd.ModelError, match="declare the coordinates"):
        cd.joint_motion()


def test_state_at_and_diagnosis_know_of_bodies_behind_joints_of_ones_own():
    m = random_mechanism(2)
    with pytest.raises(cd.ModelError, match="along which no body can be placed"):
        m.state_at({"limb 0": 0.2})
    single = cd.Mechanism()
    a, b = single.ground.frame(), single.body("b").frame()
    single.constrain("J", hinge, **axes(a, b), motion=turning.between(a, b))
    assert single.diagnose().dof == 1
