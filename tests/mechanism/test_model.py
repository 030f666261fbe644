"""Laws of the model: what it refuses and how, editing, values that copy, compare and pickle, sharing by threads."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.assemble import assemble
from mechanisms import BENCHMARKS, random_quaternion

NAN, INF = float("nan"), float("inf")


def four_bar():
    m = cd.Mechanism("four bar", gravity=(0, -9.81, 0))
    crank = m.body("crank", position=(0.1, 0.2, 0.3), mass=2.0)
    coupler = m.body("coupler", position=(1, 0, 0), orientation=(1, 0.1, 0.2, 0.3), inertia=np.diag([1.0, 2.0, 2.5]))
    m.revolute("A", m.ground.frame((0, 0, 0)), crank.frame((0, 0, 0)))
    m.spherical("B", crank.point((1, 0, 0)), coupler.point((0, 0, 0)))
    m.distance("rod", m.ground.point((3, 0, 0)), coupler.point((2, 0, 0)), 1.5)
    return m


def shapes(m):
    return list(m), list(m.bodies), list(m.joints), len(m)


# --- bad input --------------------------------------------------------------------------------------------------------

# A call on the mechanism m and the mechanism other, and what its message must name: item, value, what is valid.
BAD_CALLS = {
    "NaN position": (lambda m, other: m.body("new", position=(0, NAN, 0)), ["position", "'new'", "nan", "finite"]),
    "infinite position": (lambda m, other: m.body("new", position=(INF, 0, 0)), ["position", "'new'", "inf", "finite"]),
    "position of two numbers": (lambda m, other: m.body("new", position=(0, 1)), ["'new'", "2 numbers", "(0, 1)", "3"]),
    "position that is a number": (lambda m, other: m.body("new", position=7), ["position", "'new'", "7", "3 numbers"]),
    "position in words": (lambda m, other: m.body("new", position="123"), ["position", "'new'", "'123'", "3 numbers"]),
    "position of None": (lambda m, other: m.body("new", position=(0, None, 0)), ["'new'", "None", "3 numbers"]),
    "NaN orientation": (lambda m, other: m.body("new", orientation=(1, 0, 0, NAN)), ["orientation", "'new'", "finite"]),
    "zero quaternion": (
        lambda m, other: m.body("new", orientation=(0, 0, 0, 0)),
        ["orientation", "'new'", "(0.0, 0.0, 0.0, 0.0)", "not be zero"],
    ),
    "quaternion of three": (lambda m, other: m.body("new", orientation=(1, 0, 0)), ["'new'", "(1, 0, 0)", "4"]),
    "negative mass": (lambda m, other: m.body("new", mass=-2), ["mass", "'new'", "-2", "zero or more"]),
    "NaN mass": (lambda m, other: m.body("new", mass=NAN), ["mass", "'new'", "nan", "finite"]),
    "infinite mass": (lambda m, other: m.body("new", mass=INF), ["mass", "'new'", "inf", "finite"]),
    "mass in words": (lambda m, other: m.body("new", mass="heavy"), ["mass", "'new'", "'heavy'", "number"]),
    "NaN centre": (lambda m, other: m.body("new", center=(0, 0, NAN)), ["center", "'new'", "nan", "finite"]),
    "inertia not symmetric": (
        lambda m, other: m.body("new", inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]),
        ["inertia", "'new'", "0.5", "symmetric"],
    ),
    "inertia of no real body": (
        lambda m, other: m.body("new", inertia=np.diag([1, 1, 5])),
        ["inertia", "'new'", "5", "sum of the other two"],
    ),
    "second axis that is not perpendicular": (
        lambda m, other: m.universal("u", m.ground, m["crank"], at=(0, 0, 0), axis=np.eye(3)[2], x=np.ones(3)),
        ["universal 'u'", "x= is (1.0, 1.0, 1.0)", "axis= (0.0, 0.0, 1.0)", "perpendicular"],
    ),
    "inertia negative": (
        lambda m, other: m.body("new", inertia=np.diag([-1, 1, 1])),
        ["inertia", "'new'", "-1", "not be negative"],
    ),
    "inertia NaN": (lambda m, other: m.body("new", inertia=np.diag([1, 1, NAN])), ["inertia", "'new'", "finite"]),
    "inertia of two rows": (lambda m, other: m.body("new", inertia=np.eye(2)), ["inertia", "'new'", "2", "3×3"]),
    "name of a body again": (lambda m, other: m.body("crank"), ["'crank'", "body of that name", "choose another"]),
    "name of a joint again": (lambda m, other: m.body("A"), ["'A'", "joint of that name", "choose another"]),
    "joint with the name of a body": (
        lambda m, other: m.revolute("crank", m.ground.frame(), m["crank"].frame()),
        ["revolute", "'crank'", "body of that name", "choose another"],
    ),
    "joint with the name of a joint": (
        lambda m, other: m.fixed("B", m.ground.frame(), m["crank"].frame()),
        ["fixed", "'B'", "joint of that name", "choose another"],
    ),
    "body named ground": (lambda m, other: m.body("ground"), ["'ground'", "fixed body"]),
    "empty name": (lambda m, other: m.body("  "), ["'  '", "non-empty string"]),
    "name that is a number": (lambda m, other: m.body(3), ["name of a body", "3", "non-empty string"]),
    "zero axis": (
        lambda m, other: m.revolute("new", m.ground.frame(z=(0, 0, 0)), m["crank"].frame()),
        ["axis z", "'ground'", "(0.0, 0.0, 0.0)", "not be zero"],
    ),
    "NaN axis": (lambda m, other: m["crank"].frame(z=(0, NAN, 1)), ["axis z", "'crank'", "nan", "finite"]),
    "zero reference x": (lambda m, other: m["crank"].frame(x=(0, 0, 0)), ["reference x", "'crank'", "not be zero"]),
    "x along z": (
        lambda m, other: m["crank"].frame(z=(0, 0, 2), x=(0, 0, -3)),
        ["reference x", "'crank'", "(0, 0, -3)", "parallel to its axis z"],
    ),
    "NaN origin": (lambda m, other: m["crank"].frame((NAN, 0, 0)), ["origin", "'crank'", "nan", "finite"]),
    "infinite point": (lambda m, other: m["crank"].point((0, 0, -INF)), ["point", "'crank'", "inf", "finite"]),
    "frame of another mechanism": (
        lambda m, other: m.revolute("new", m.ground.frame(), other["crank"].frame()),
        ["revolute 'new'", "'crank'", "another mechanism", "'other'", "'four bar'"],
    ),
    "ground of another mechanism": (
        lambda m, other: m.spherical("new", other.ground.point(), m["crank"].point()),
        ["spherical 'new'", "'ground'", "another mechanism", "'four bar'"],
    ),
    "frame of a removed body": (
        lambda m, other: m.revolute("new", m.ground.frame(), removed_body(m).frame()),
        ["revolute 'new'", "'gone'", "removed"],
    ),
    "a joint from a body to itself": (
        lambda m, other: m.revolute("new", m["crank"].frame(), m["crank"].frame((1, 0, 0))),
        ["revolute 'new'", "'crank'", "itself", "two different bodies"],
    ),
    "a joint from the ground to itself": (
        lambda m, other: m.distance("new", m.ground.point(), m.ground.point((1, 0, 0)), 1.0),
        ["distance 'new'", "'ground'", "itself", "two different bodies"],
    ),
    "a joint to itself by keywords": (
        lambda m, other: m.revolute("new", b=m["crank"].frame(), a=m["crank"].frame((1, 0, 0))),
        ["revolute 'new'", "'crank'", "itself"],
    ),
    "point where a frame is needed": (
        lambda m, other: m.revolute("new", m.ground.frame(), m["crank"].point()),
        ["revolute 'new'", "Point", "must be a frame", "body.frame("],
    ),
    "body where a frame is needed": (
        lambda m, other: m.spherical("new", m.ground, m["crank"]),
        ["spherical 'new'", "<Body 'ground'>", "point or frame", "body.point("],
    ),
    "one frame missing": (lambda m, other: m.revolute("new", m.ground.frame()), ["revolute 'new'", "'b'"]),
    "one frame too many": (
        lambda m, other: m.revolute("new", m.ground.frame(), m["crank"].frame(), m["coupler"].frame()),
        ["revolute 'new'", "help(Mechanism.revolute)"],
    ),
    "length missing": (
        lambda m, other: m.distance("new", m.ground.point(), m["crank"].point()),
        ["distance 'new'", "'length'"],
    ),
    "unknown option": (
        lambda m, other: m.distance("new", m.ground.point(), m["crank"].point(), 1.0, lenght=2.0),
        ["distance 'new'", "'lenght'"],
    ),
    "negative distance": (
        lambda m, other: m.distance("new", m.ground.point(), m["crank"].point(), -1.5),
        ["distance 'new'", "length", "-1.5", "zero or more"],
    ),
    "NaN distance": (
        lambda m, other: m.distance("new", m.ground.point(), m["crank"].point(), NAN),
        ["distance 'new'", "length", "nan", "finite"],
    ),
    "angle beyond half a turn": (
        lambda m, other: m.angle("new", m.ground.frame(), m["crank"].frame(), 4.0),
        ["angle 'new'", "4.0 rad", "between 0 and π"],
    ),
    "infinite angle": (
        lambda m, other: m.angle("new", m.ground.frame(), m["crank"].frame(), INF),
        ["angle 'new'", "inf", "finite"],
    ),
    "removal of an unknown name": (lambda m, other: m.remove("crnk"), ["'crnk'", "did you mean 'crank'"]),
    "removal of a body of another mechanism": (
        lambda m, other: m.remove(other["crank"]),
        ["'crank'", "another mechanism"],
    ),
    "removal of a joint of another mechanism": (lambda m, other: m.remove(other["A"]), ["'A'", "another mechanism"]),
    "removal of a body that has joints": (lambda m, other: m.remove("crank"), ["'crank'", "'A'", "'B'", "joints=True"]),
    "removal of the ground": (lambda m, other: m.remove("ground"), ["ground", "cannot be removed"]),
    "an unknown item": (lambda m, other: m["cupler"], ["'cupler'", "did you mean 'coupler'"]),
    "an unknown item like no other": (lambda m, other: m["zzz"], ["'zzz'", "'crank'", "'rod'"]),
    "NaN gravity": (lambda m, other: setattr(m, "gravity", (0, 0, NAN)), ["gravity", "'four bar'", "nan", "finite"]),
    "NaN position set": (lambda m, other: setattr(m["crank"], "position", (NAN, 0, 0)), ["'crank'", "nan", "finite"]),
    "zero orientation set": (
        lambda m, other: setattr(m["crank"], "orientation", (0, 0, 0, 0)),
        ["orientation", "'crank'", "not be zero"],
    ),
    "negative mass set": (lambda m, other: setattr(m["crank"], "mass", -1), ["mass", "'crank'", "-1", "zero or more"]),
    "ground moved": (lambda m, other: setattr(m.ground, "position", (1, 0, 0)), ["position of the ground", "bodies"]),
    "unknown method": (lambda m, other: m.assemble(method="magic"), ["method", "'magic'", "'auto'", "'newton'"]),
    "unknown formulation": (
        lambda m, other: m.assemble(formulation="quaternions"),
        ["formulation", "'quaternions'", "'manifold'", "'euler_parameters'"],
    ),
    "zero tolerance": (lambda m, other: m.assemble(tolerance=0), ["tolerance", "0.0", "above zero"]),
    "NaN tolerance": (lambda m, other: m.assemble(tolerance=NAN), ["tolerance", "nan", "finite"]),
    "tolerance of one": (lambda m, other: m.assemble(tolerance=1.0), ["tolerance", "1.0", "below 1"]),
    "no iterations": (lambda m, other: m.assemble(max_iterations=0), ["max_iterations", "0", "from 1 on"]),
    "half an iteration": (lambda m, other: m.assemble(max_iterations=0.5), ["max_iterations", "0.5", "whole number"]),
    "no seconds": (lambda m, other: m.assemble(max_seconds=0), ["max_seconds", "0.0", "above zero"]),
    "NaN seconds": (lambda m, other: m.assemble(max_seconds=NAN), ["max_seconds", "nan", "finite"]),
    "negative restarts": (lambda m, other: m.assemble(restarts=-1), ["restarts", "-1", "from 0 on"]),
    "restarts of a single attempt": (
        lambda m, other: m.assemble(method="newton", restarts=3),
        ["restarts", "3", "'newton'", "method='auto'"],
    ),
    "negative seed": (lambda m, other: m.assemble(seed=-1), ["seed", "-1", "from 0 on"]),
    "start of a number": (lambda m, other: m.assemble(5), ["start", "5", "State", "{body: (position, quaternion)}"]),
    "start of an unknown body": (
        lambda m, other: m.assemble({"crnk": ((0, 0, 0), (1, 0, 0, 0))}),
        ["'crnk'", "did you mean 'crank'"],
    ),
    "start with half a pose": (
        lambda m, other: m.assemble({"crank": (0, 0, 0)}),
        ["'crank'", "(position, quaternion)"],
    ),
    "start with a NaN": (
        lambda m, other: m.assemble({"crank": ((0, 0, NAN), (1, 0, 0, 0))}),
        ["position", "'crank'", "nan", "finite"],
    ),
    "start with a zero quaternion": (
        lambda m, other: m.assemble({"crank": ((0, 0, 0), (0, 0, 0, 0))}),
        ["orientation", "'crank'", "not be zero"],
    ),
    "start that is a state of other bodies": (
        lambda m, other: m.assemble(other.state),
        ["'coupler'", "'slider'", "state of this mechanism"],
    ),
    "diagnosis of a state of other bodies": (
        lambda m, other: m.diagnose(other.state),
        ["'coupler'", "'slider'", "state of this mechanism"],
    ),
    "diagnosis of what is no state": (lambda m, other: m.diagnose(m.assemble()), ["AssemblyResult", "State"]),
    "a coordinate of what is no state": (
        lambda m, other: cd.coordinate(m.ground.frame(), m["crank"].frame()).value("x"),
        ["angle of 'ground' – 'crank'", "'x'", "State"],
    ),
    "a relative pose in what is no state": (lambda m, other: m["A"].relative("x"), ["joint 'A'", "'x'", "State"]),
    "a state moved by a number": (lambda m, other: m.state.moved(3), ["moved", "3", "{body: (position, quaternion)}"]),
    "an unknown body of a state": (lambda m, other: m.state["crnk"], ["'crnk'", "did you mean 'crank'"]),
    "a coordinate the joint has not": (
        lambda m, other: m["A"].coordinate(m.state, "displacement"),
        ["'A'", "revolute", "'displacement'", "'angle'"],
    ),
    "the coordinate of a joint that has none": (
        lambda m, other: m["B"].coordinate(m.state),
        ["'B'", "spherical", "no coordinates"],
    ),
}


def removed_body(m):
    gone = m.body("gone")
    m.remove("gone")
    return gone


@pytest.fixture
def other():
    m = cd.Mechanism("other")
    crank = m.body("crank")
    m.body("slider")
    m.revolute("A", m.ground.frame(), crank.frame())
    return m


@pytest.mark.parametrize("case", BAD_CALLS)
def test_a_bad_call_says_what_is_wrong_and_leaves_nothing_behind(case, other):
    call, fragments = BAD_CALLS[case]
    m = four_bar()
    before, twin, other_before = shapes(m), four_bar(), other.copy()
    with pytest.raises(cd.ModelError) as caught:
        call(m, other)
    message = str(caught.value)
    assert not [f for f in fragments if f not in message], message
    assert message[0] != "(" and "Traceback" not in message and "\n" not in message
    assert shapes(m) == before
    assert m == twin
    assert other == other_before
    assert m.system == twin.system
    new = m.body("new", position=(3, 0, 0))
    m.revolute("new hinge", m.ground.frame((3, 0, 0)), new.frame())
    assert shapes(m)[0] == [*before[1], "new", *before[2], "new hinge"]
    assert m.assemble().ok


def test_every_error_of_a_model_is_a_cardan_error_and_a_value_error(other):
    assert issubclass(cd.ModelError, cd.CardanError) and issubclass(cd.ModelError, ValueError)
    assert issubclass(cd.UnknownNameError, cd.ModelError) and issubclass(cd.UnknownNameError, KeyError)
    with pytest.raises(cd.UnknownNameError):
        other["nobody"]


@pytest.mark.parametrize("use", ["assemble", "diagnose", "system", "state"])
def test_a_mechanism_without_bodies_says_so_and_can_be_built_on(use):
    m = cd.Mechanism("empty")
    with pytest.raises(cd.ModelError, match=r"'empty' has no bodies; add one with m\.body\(name\)"):
        value = getattr(m, use)
        value()
    m.body("first")
    assert m.assemble().ok


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_mechanism_needs_a_name(name):
    with pytest.raises(cd.ModelError, match="non-empty string"):
        cd.Mechanism(name)
    with pytest.raises(cd.ModelError, match="non-empty string"):
        four_bar().copy(name="")


# --- looking and editing ----------------------------------------------------------------------------------------------


def test_items_are_found_by_name_in_the_order_they_were_made():
    m = four_bar()
    assert list(m) == ["crank", "coupler", "A", "B", "rod"]
    assert len(m) == 5
    assert list(m.bodies) == ["crank", "coupler"] and list(m.joints) == ["A", "B", "rod"]
    assert m["crank"] is m.bodies["crank"] and m["A"] is m.joints["A"] and m["ground"] is m.ground
    assert "crank" in m and "A" in m and "ground" in m and "zzz" not in m
    assert (m["A"].a.body, m["A"].b.body) == (m.ground, m["crank"])
    assert m["rod"].parameters == (("length", 1.5),)
    assert m.gravity == (0.0, -9.81, 0.0)


@pytest.mark.parametrize("thing", [[], {}, None, 3, ("crank",)])
def test_what_is_no_name_is_in_no_mechanism(thing):
    assert thing not in four_bar() and "crank" in four_bar() and "ground" in four_bar()


def test_the_listing_of_a_mechanism_is_a_copy():
    m = four_bar()
    m.bodies.clear()
    m.joints.clear()
    assert len(m) == 5


def test_removing_what_was_added_gives_the_mechanism_before():
    m, plain = four_bar(), four_bar()
    extra = m.body("extra")
    m.fixed("E", m["coupler"].frame(), extra.frame())
    assert m != plain
    m.remove("E")
    m.remove(extra)
    assert m == plain and m.system == plain.system


def test_removing_a_body_with_its_joints_leaves_the_others():
    m = four_bar()
    m.remove(m["crank"], joints=True)
    assert list(m) == ["coupler", "rod"]
    assert m.assemble().ok
    m.remove(m["rod"])
    assert list(m) == ["coupler"]


def test_a_name_is_free_again_after_removal_and_the_old_body_is_not_the_new_one():
    m = four_bar()
    old = m["crank"]
    m.remove("crank", joints=True)
    new = m.body("crank")
    with pytest.raises(cd.ModelError, match="removed"):
        m.revolute("A", m.ground.frame(), old.frame())
    m.revolute("A", m.ground.frame(), new.frame())
    assert list(m) == ["coupler", "crank", "rod", "A"]


EDITS = {
    "position": lambda m: setattr(m["crank"], "position", (5, 0, 0)),
    "orientation": lambda m: setattr(m["crank"], "orientation", (0, 1, 0, 0)),
    "body": lambda m: m.body("more"),
    "joint": lambda m: m.parallel("more", m.ground.frame(), m["coupler"].frame()),
    "removal": lambda m: m.remove("rod"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_makes_a_new_system_and_leaves_the_old_one_as_it_was(edit):
    m = four_bar()
    before = m.system
    assert m.system is before
    digest, state = digest_of(before), m.state
    EDITS[edit](m)
    assert m.system is not before
    assert m.system != before
    assert digest_of(before) == digest
    assert state == before.state()


def test_an_edit_takes_part_in_the_next_assembly():
    m = four_bar()
    assert m.assemble().ok
    rod = m["rod"]
    m.remove("rod")
    m.distance("rod", rod.a, rod.b, 1.25)
    result = m.assemble()
    assert result.ok
    assert abs(np.linalg.norm(result.state["coupler"].point((2, 0, 0)) - (3, 0, 0)) - 1.25) <= 1e-11


def test_authored_numbers_are_kept_and_quaternions_scaled_to_length_one():
    m = cd.Mechanism()
    body = m.body("b", position=np.array([1, 2, 3]), orientation=(0, 3, 0, 4), mass=np.float64(2), center=[0, 0, 1])
    assert body.position == (1.0, 2.0, 3.0) and body.orientation == (0.0, 0.6, 0.0, 0.8)
    assert (body.mass, body.center, body.inertia) == (2.0, (0.0, 0.0, 1.0), None)
    body.inertia = np.diag([1, 2, 2])
    assert body.inertia == ((1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 2.0))
    body.orientation = (1e-200, 0, 0, 0)
    assert body.orientation == (1.0, 0.0, 0.0, 0.0)
    body.orientation = (1e200, 1e200, 0, 0)
    assert body.orientation == pytest.approx((0.5**0.5, 0.5**0.5, 0.0, 0.0), abs=1e-15)


def test_inertias_of_flat_bodies_may_be_rounded():
    """A thin disc has I_z = 2 I_x; with few digits the sum of the other two may be a little less."""
    m = cd.Mechanism()
    for k, moments in enumerate([(0.0333, 0.0333, 0.0667), (0.13, 0.13, 0.27), (0.0, 0.0833, 0.0834)]):
        assert m.body(f"disc {k}", inertia=np.diag(moments)).inertia[2][2] == moments[2]


def test_a_frame_is_right_handed_with_x_made_orthogonal_to_z():
    m = cd.Mechanism()
    frame = m.ground.frame((1, 2, 3), z=(0, 0, 5), x=(2, 0, 7))
    assert (frame.origin, frame.x, frame.y, frame.z) == ((1.0, 2.0, 3.0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    assert frame.point() == m.ground.point((1, 2, 3))
    assert frame == m.ground.frame((1, 2, 3), x=(3, 0, 1))
    assert frame != m.ground.frame((1, 2, 3))  # whether x was given is part of it


# --- values: copy, compare, pickle ------------------------------------------------------------------------------------

COPIES = {
    "copy method": lambda m: m.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("used", [False, True])
def test_a_copy_of_a_mechanism_is_equal_and_an_edit_of_it_leaves_the_original_alone(way, used):
    m, twin = four_bar(), four_bar()
    if used:
        m.assemble()
    made = COPIES[way](m)
    assert made == m and made is not m
    assert made.system == m.system and made.assemble() == m.assemble()
    system, digest = m.system, digest_of(m.system)
    made["crank"].position = (9, 9, 9)
    made.remove("rod")
    made.body("more")
    made.gravity = (0, 0, 0)
    assert m == twin and made != m
    assert m.system is system and digest_of(system) == digest
    assert made.system.names == ("crank", "coupler", "more")


@pytest.mark.parametrize("way", COPIES)
def test_parts_of_a_copy_belong_to_the_copy(way):
    m = four_bar()
    made = COPIES[way](m)
    assert made["crank"] is not m["crank"] and made.ground is not m.ground
    assert made["A"].b.body is made["crank"] and made["A"].a.body is made.ground
    made.parallel("own", made.ground.frame(), made["coupler"].frame())
    with pytest.raises(cd.ModelError, match="another mechanism"):
        made.parallel("foreign", made.ground.frame(), m["coupler"].frame())


def test_a_copy_can_be_given_another_name():
    m = four_bar()
    assert m.copy(name="second").name == "second" and m.name == "four bar"
    assert m.copy(name="second") != m


DIFFERENCES = {
    "gravity": lambda m: setattr(m, "gravity", (0, 0, 0)),
    "mass": lambda m: setattr(m["crank"], "mass", 3.0),
    "inertia": lambda m: setattr(m["crank"], "inertia", np.eye(3)),
    "centre": lambda m: setattr(m["crank"], "center", (0, 0, 1)),
    **EDITS,
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_mechanisms_that_differ_in_one_thing_are_not_equal(what):
    one, two = four_bar(), four_bar()
    assert one == two
    DIFFERENCES[what](two)
    assert one != two
    assert one != "four bar"


def test_values_that_can_change_or_hold_arrays_have_no_hash():
    m = four_bar()
    for value in (m, m.system, m.state, m.assemble()):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, COPIES["pickle"]])
def test_system_state_and_result_survive_copy_and_pickle(way):
    m = four_bar()
    result = m.assemble()
    state = result.state
    assert way(m.system) == m.system and way(m.system).names == m.system.names
    assert digest_of(way(m.system)) == digest_of(m.system)
    made = way(state)
    assert made == state and made["crank"].position.tolist() == state["crank"].position.tolist()
    assert not made.coordinates.flags.writeable
    again = way(result)
    assert again == result
    assert (again.ok, again.status, again.worst, again.text()) == (True, result.status, result.worst, result.text())
    assert again.status is cd.Status.ASSEMBLED


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, COPIES["pickle"]])
def test_a_batch_survives_copy_and_pickle_and_compares_by_value(way):
    m = four_bar()
    batch = m.assemble_many([None, m.assemble().state])
    assert way(batch) == batch == m.assemble_many([None, m.assemble().state])
    assert batch != m.assemble_many([None, None])
    assert batch != m.assemble_many([None, m.assemble().state], formulation="relative")
    assert batch != "assembled"
    with pytest.raises(TypeError, match="unhashable"):
        hash(batch)


@pytest.mark.parametrize("k", [2, -3, slice(0, 2), "a", 1.0, None, True])
def test_a_state_of_a_batch_is_asked_for_by_the_number_of_its_start(k):
    m = four_bar()
    batch = m.assemble_many([None, None])
    assert batch.state(-1) == batch.state(np.int64(1)) == m.assemble().state
    with pytest.raises(cd.ModelError, match="it must be a whole number from 0 to 1"):
        batch.state(k)


def test_a_state_has_a_pose_for_every_body():
    """Kernels trust it: with less they would read what is not there."""
    m = four_bar()
    for wrong in (np.zeros((1, 7)), np.zeros((2, 6)), np.zeros(14)):
        with pytest.raises(cd.ModelError, match=r"have shape .*; it must be \(2, 7\), r and p of each body"):
            m.system.state(wrong)


def test_angles_that_are_no_numbers_are_equal_and_have_no_turns():
    """As a broken run leaves them."""
    m = cd.Mechanism()
    nut = m.body("nut", position=(0.1, 0, 0.3))
    m.screw("thread", m.ground.frame(x=(1, 0, 0)), nut.frame(x=(1, 0, 0)), pitch=1e-16)
    m.point_in_plane("plane", nut.point(), m.ground.frame((0, 0, 1)))
    results = [m.assemble(method="newton", formulation="relative") for _ in range(2)]
    assert np.isnan(results[0].state.angles["thread"])
    assert results[0].state == results[1].state and results[0] == results[1]
    assert results[0].state.turns == {}
    assert np.isnan(m["thread"].coordinates(results[0].state)["angle"])
    assert np.isnan(results[0].worst[0].residual) or np.isinf(results[0].worst[0].residual)
    with pytest.raises(cd.ModelError, match=r"the angles of a state have shape \(3,\); it must be \(1,\)"):
        m.system.state(m.state.coordinates.copy(), np.zeros(3))


def test_a_copied_system_assembles_like_its_original():
    m = four_bar()
    copied = pickle.loads(pickle.dumps(m.system))
    assert assemble(copied, None, None, cd.AssemblyOptions()) == m.assemble()


def test_a_pickled_state_is_a_start_for_another_process_mechanism():
    m = four_bar()
    state = m.assemble().state
    again = pickle.loads(pickle.dumps(m)).assemble(pickle.loads(pickle.dumps(state)))
    assert (again.ok, again.iterations) == (True, 0)


def test_a_diagnosis_survives_pickle_and_compares_by_value():
    m = four_bar()
    report = m.diagnose(m.assemble().state)
    again = pickle.loads(pickle.dumps(report))
    assert again.text() == report.text()
    assert again == report
    m.remove("rod")
    assert m.diagnose() != report


def test_equal_results_are_those_with_the_same_verdict_and_state():
    m = four_bar()
    one, two = m.assemble(), m.assemble()
    assert one == two
    assert one != m.assemble(two.state)  # other iterations
    assert one != "assembled"


def test_a_result_is_plain_values_for_json():
    result = four_bar().assemble()
    told = json.loads(json.dumps(result.as_dict()))
    assert told["ok"] is True and told["status"] == "assembled"
    assert told["bodies"]["crank"]["position"] == result.state["crank"].position.tolist()
    assert {entry["unit"] for entry in told["residuals"]} == {"m", "rad"} and told["worst"] == []
    assert told["iterations"] == result.iterations


# --- State ------------------------------------------------------------------------------------------------------------


def test_a_state_is_a_mapping_from_body_names_to_poses():
    m = four_bar()
    state = m.state
    assert list(state) == ["crank", "coupler"] == list(state.keys()) and len(state) == 2
    assert "crank" in state and "zzz" not in state
    assert state.get("zzz") is None
    assert dict(state.items())["crank"].position.tolist() == [0.1, 0.2, 0.3]
    assert [pose.position.tolist() for pose in state.values()] == state.positions.tolist()
    assert state[m["crank"]].quaternion.tolist() == state["crank"].quaternion.tolist()
    assert state["ground"].position.tolist() == [0, 0, 0] and state[m.ground].quaternion.tolist() == [1, 0, 0, 0]
    assert (state.time, state.velocities, state.turns) == (0.0, None, {})


def test_a_pose_maps_body_points_and_vectors_to_world():
    m = cd.Mechanism()
    m.body("b", position=(1, 2, 3), orientation=(1, 0, 0, 1))  # a quarter turn about z
    pose = m.state["b"]
    assert pose.matrix == pytest.approx(np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]), abs=1e-15)
    assert pose.point((1, 0, 0)) == pytest.approx([1, 3, 3], abs=1e-15)
    assert pose.vector((0, 1, 0)) == pytest.approx([-1, 0, 0], abs=1e-15)


def test_a_state_cannot_be_written_to():
    state = four_bar().assemble().state
    for array in (
        state.coordinates,
        state.positions,
        state.quaternions,
        state["crank"].position,
        state["ground"].position,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0


def test_attributes_of_states_and_poses_cannot_be_set():
    state = four_bar().assemble().state
    kept = pickle.loads(pickle.dumps(state))
    for name, way in (("time", "time="), ("coordinates", "moved"), ("velocities", "with_rates"), ("angles", "moved")):
        with pytest.raises(cd.ReadOnlyError, match=rf"'{name}' of a state cannot be set.*{way}"):
            setattr(state, name, 1.0)
    with pytest.raises(cd.ReadOnlyError, match=r"'variables' of a state.*with_variables"):
        state.variables = {}
    with pytest.raises(cd.ReadOnlyError, match=r"'time' of a state"):
        del state.time
    pose = state["crank"]
    with pytest.raises(cd.ReadOnlyError, match=r"'position' of a pose cannot be set.*state\.moved"):
        pose.position = np.ones(3)
    assert state == kept and copy.deepcopy(pose) == pose == pickle.loads(pickle.dumps(pose))


def test_angles_and_variables_of_a_state_cannot_be_changed_in_place():
    m = cd.Mechanism("m")
    length, b = m.parameter("r", 0.2), m.body("b")
    m.drive("motor", m.revolute("A", m.ground.frame(), b.frame((length, 0, 0))), 0.4)
    found = m.assemble().state
    for state in (found, found.with_variables({"r": 0.3})):
        before = state.to_dict()
        for values, key in ((state.angles, "A"), (state.variables, "r")):
            with pytest.raises(TypeError, match="does not support item assignment"):
                values[key] = 0.5
            assert dict(values) == {key: values[key]}
        assert state.to_dict() == before
        for same in (pickle.loads(pickle.dumps(state)), copy.copy(state), copy.deepcopy(state)):
            assert same == state and same.angles == state.angles and same.variables == state.variables
    assert m.parameters["r"].value == 0.2


def test_a_moved_state_is_a_new_one():
    m = four_bar()
    state = m.state
    moved = state.moved({m["crank"]: ((1, 1, 1), (0, 0, 0, -2)), "coupler": state["crank"]})
    assert moved["crank"].position.tolist() == [1, 1, 1] and moved["crank"].quaternion.tolist() == [0, 0, 0, -1]
    assert moved["coupler"].position.tolist() == [0.1, 0.2, 0.3]
    assert state == four_bar().state and moved != state
    with pytest.raises(cd.ModelError, match=r"movable body.*'ground'.*'crank'"):
        state.moved({"ground": ((0, 0, 0), (1, 0, 0, 0))})
    with pytest.raises(cd.ModelError, match=r"'crank' is 3; it must be a Pose or \(position, quaternion\)"):
        state.moved({"crank": 3})


# --- System: frozen, shared -------------------------------------------------------------------------------------------


def digest_of(system):
    """Of every array and number a system has."""
    total = hashlib.sha256()
    for name in ("ints", "floats", "powers", "authored", "reference_points", "origin", "level"):
        total.update(np.ascontiguousarray(getattr(system, name)).tobytes())
    total.update(repr((system.names, system.length, system.equations, system.index, system.rows)).encode())
    return total.hexdigest()


@pytest.mark.parametrize("model", BENCHMARKS)
def test_nothing_that_uses_a_system_changes_it(model):
    built = BENCHMARKS[model]().build()
    m = built.mechanism
    system = m.system
    before = digest_of(system)
    for formulation in ("manifold", "euler_parameters"):
        for method in ("auto", "levenberg_marquardt", "newton", "gradient", "hybrid"):
            m.assemble(built.uniform_start(1), method=method, formulation=formulation, max_iterations=30)
    m.diagnose(m.assemble().state)
    for joint in m.joints.values():
        joint.coordinates(m.state)
    assert m.system is system
    assert digest_of(system) == before


@pytest.mark.parametrize("model", BENCHMARKS)
def test_threads_that_share_a_system_get_what_one_thread_gets(model):
    built = BENCHMARKS[model]().build()
    m = built.mechanism
    starts = [built.uniform_start(seed) for seed in range(30)]

    def work(start):
        return m.assemble(start, max_iterations=100, restarts=2)

    def fresh():
        m._model.assign()  # a system without derived tables: both threads make them at once
        return m.system

    serial = [work(start) for start in starts]
    for _ in range(3):
        fresh()
        with ThreadPoolExecutor(2) as pool:
            threaded = list(pool.map(work, starts))
        assert threaded == serial


def test_the_count_of_a_system_is_that_of_its_joints():
    m = four_bar()
    assert m.system.equations == 5 + 3 + 1 == sum(joint.equations for joint in m.joints.values())
    assert m.system.gruebler == 12 - 9
    assert m.system.names == ("crank", "coupler")
    rng = np.random.default_rng(5)
    assert m.system.state(np.array([[*rng.normal(size=3), *random_quaternion(rng)] for _ in range(2)])).names == (
        "crank",
        "coupler",
    )


def test_a_misspelt_attribute_of_a_mechanism_is_refused():
    m = cd.Mechanism("x")
    with pytest.raises(cd.UnknownNameError, match="did you mean 'gravity'"):
        m.gravty = (0, 0, 0)
    m.gravity = (0, 0, -1.6)
    assert m.gravity == (0, 0, -1.6)


def test_wrong_kinds_of_arguments_are_named(tmp_path):
    m = cd.Mechanism()
    screw = m.screw("thread", m.ground.frame(), m.body("nut", mass=1.0).frame(), pitch=0.02)
    with pytest.raises(cd.ModelError, match=r"'thread' \(screw\) has 2 coordinates, 'angle', 'displacement'; name one"):
        m.simulate(0.01).coordinate(screw)
    with pytest.raises(cd.ModelError, match="the units are 'mm'"):
        m.save(tmp_path / "m.json", units="mm")
    for call in (m.save, cd.load):
        with pytest.raises(cd.ModelError, match="the file is 3; give its path"):
            call(3)
    with pytest.raises(cd.ModelError, match="the rates 3; they must be by joint"):
        m.solve_rates(m.state, 3)
    with pytest.raises(cd.ModelError, match="the pose is 'a'"):
        cd.geometry.closest_pair(cd.geometry.sphere(1.0), (2.0, 0.0, 0.0), "a")
    with m.session() as session, pytest.raises(AttributeError, match="mode"):
        session.mode = "dynamic"
