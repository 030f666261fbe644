"""Items of another mechanism are refused by name; parts of a model are read-only, and sessions are not copied."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import cardan as cd


def ramp(t):
    return t


def arm(name: str = "arm", length: float = 1.0) -> cd.Mechanism:
    """Two links with a design parameter, a driver, a limit and a spring; the same names whatever the length."""
    m = cd.Mechanism(name)
    L = m.parameter("L", length)
    a, b = (m.body(word, position=(x, 0, 0), mass=1.0, inertia=np.eye(3)) for word, x in (("a", 0), ("b", length)))
    A, B = m.revolute("A", m.ground.frame(), a.frame()), m.revolute("B", a.frame((L, 0, 0)), b.frame())
    m.spring("S", B, stiffness=3.0)
    m.drive("D", A, ramp)
    m.limit("stop", B, lower=-9.0)
    return m


POSE = (0, 0, 0), (1, 0, 0, 0)
FOREIGN = {
    "start of assemble": lambda m, o: m.assemble({o["a"]: POSE}),
    "start of move": lambda m, o: m.move([0.0, 0.1], {o["a"]: POSE}),
    "start of simulate": lambda m, o: m.simulate(0.1, {o["a"]: POSE}),
    "start of equilibrium": lambda m, o: m.equilibrium({o["a"]: POSE}),
    "start of linearize": lambda m, o: m.linearize({o["a"]: POSE}),
    "start of session": lambda m, o: m.session({o["a"]: POSE}),
    "joint of state_at": lambda m, o: m.state_at({o["B"]: 1.0}),
    "coordinate of state_at": lambda m, o: m.state_at({o["B"].of("angle"): 1.0}),
    "body of state_at": lambda m, o: m.state_at({o["b"]: POSE}),
    "joint of solve_rates": lambda m, o: m.solve_rates(m.state, {o["B"]: 1.0}),
    "coordinate of solve_rates": lambda m, o: m.solve_rates(m.state, {o["B"].of("angle"): 1.0}),
    "joint of constraint_equations": lambda m, o: m.constraint_equations(m.state, o["A"]),
    "driver of jacobian": lambda m, o: m.jacobian(m["a"], m.state, by=[o["D"]]),
    "point of jacobian": lambda m, o: m.jacobian(o["a"].point(), m.state),
    "output of sensitivity": lambda m, o: m.sensitivity(m.state, [o["B"]]),
    "parameter of sensitivity": lambda m, o: m.sensitivity(m.state, ["B"], [o["L"]]),
    "parameter of assemble": lambda m, o: m.assemble(free=[o["L"]]),
    "parameter of diagnose": lambda m, o: m.diagnose(free=[o["L"]]),
    "body of a grasp": lambda m, o: m.session().grasp(o["b"]),
    "body of a push": lambda m, o: m.session(mode="dynamic").push(o["b"], direction=(1, 0, 0)),
    "joint of a range": lambda m, o: m.session().range(o["B"]),
    "coordinate of a range": lambda m, o: m.session().range(o["B"].of("angle")),
    "face": lambda m, o: m.contact("x", m["a"].attach(cd.geometry.sphere(0.1)), o["b"].attach(cd.geometry.plane())),
    "frame of a coordinate": lambda m, o: cd.coordinate(m["a"].frame(), o["b"].frame()),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_what_belongs_to_another_mechanism_is_refused_by_name(case):
    m, other = arm(), arm("other", 2.0)
    with pytest.raises(cd.ModelError) as refused:
        FOREIGN[case](m, other)
    text = str(refused.value)
    assert any(f"'{name}'" in text for name in ("a", "b", "A", "B", "D", "L")), text
    assert "another mechanism" in text or "no longer" in text or "two mechanisms" in text, text


@pytest.mark.parametrize("case", [case for case in FOREIGN if case not in ("face", "frame of a coordinate")])
def test_what_belongs_to_the_mechanism_itself_is_taken(case):
    m = arm()
    FOREIGN[case](m, m)


READ = {
    "coordinate": lambda result, m: result.coordinate(m["B"]),
    "coordinate by name": lambda result, m: result.coordinate(m["B"].of("angle")),
    "reaction": lambda result, m: result.reaction(m["B"]),
    "effort": lambda result, m: result.effort(m["D"]),
}


@pytest.mark.parametrize("case", READ)
def test_results_refuse_joints_of_another_mechanism_and_take_those_of_a_copy(case):
    m, other = arm(), arm("other", 2.0)
    m.actuator("free", m["B"], 0.1)
    other.remove("D")
    other.remove("B", joints=True)
    other.revolute("B", other["a"].frame((0.5, 0, 0)), other["b"].frame())
    other.drive("D", other["B"], ramp)
    driven = arm()
    driven.drive("E", driven["B"], ramp)
    for mechanism, result in ((m, m.simulate(0.01)), (driven, driven.move([0.0, 0.1]))):
        with pytest.raises(cd.ModelError, match=r"of another mechanism \('other'\)"):
            READ[case](result, other)
        for own in (mechanism, mechanism.copy(), pickle.loads(pickle.dumps(mechanism))):
            READ[case](result, own)


READ_OF_BODIES = {
    "positions": lambda result, m: result.positions(m["b"]),
    "quaternions": lambda result, m: result.quaternions(m["b"]),
    "velocities": lambda result, m: result.velocities(m["b"]),
    "accelerations": lambda result, m: result.accelerations(m["b"]),
    "trace": lambda result, m: result.trace(m["b"]),
    "reaction": lambda result, m: result.reaction("B", on=m["b"]),
    "state": lambda result, m: result.state[m["b"]],
    "moved": lambda result, m: result.state.moved({m["b"]: result.state["b"]}),
}


@pytest.mark.parametrize("case", READ_OF_BODIES)
def test_results_refuse_bodies_of_another_mechanism_and_take_those_of_a_copy(case):
    m, other = arm(), arm("other", 2.0)
    other["b"].mass = 7.0
    driven = arm()
    driven.drive("E", driven["B"], ramp)
    for mechanism, result in ((m, m.simulate(0.01)), (driven, driven.move([0.0, 0.1]))):
        with pytest.raises(cd.ModelError, match=r"of another mechanism \('other'\); use that of '.*', or the name 'b'"):
            READ_OF_BODIES[case](result, other)
        for own in (mechanism, mechanism.copy(), pickle.loads(pickle.dumps(mechanism))):
            READ_OF_BODIES[case](result, own)
    assert result.coordinate("B") == pytest.approx(result.coordinate(driven.copy()["B"]), abs=0)


def test_coordinates_of_a_copy_are_read_if_its_bodies_are_drawn_elsewhere():
    """The joint is the same, and coordinates do not depend on the drawn poses."""
    m = arm()
    copy, sim = m.copy(), m.simulate(0.01)
    copy["b"].position = (3.0, 0.1, 0.0)
    assert np.array_equal(sim.rate(copy["B"]), sim.rate("B"))
    assert sim.state.coordinate(copy["B"]) == sim.state.coordinate("B")
    assert np.array_equal(copy["B"].relative(sim.state).d_A, m["B"].relative(sim.state).d_A)


def test_a_hand_of_another_session_has_no_range():
    m = arm()
    first, second = m.session(), m.session()
    with pytest.raises(cd.ModelError, match=r"hand on 'b'.*of this session"):
        second.range(first.grasp("b"))


def test_forward_kinematics_uses_the_values_of_parameters():
    m = arm(length=2.0)
    state = m.state_at({"A": 0.5, "B": 0.25})
    assert state["b"].position == pytest.approx([2 * np.cos(0.5), 2 * np.sin(0.5), 0.0], abs=1e-15)
    assert state.variables == {"L": 2.0} and m.assemble(state, time=0.5).iterations == 0


PARTS = {
    "load": (lambda m: m["S"], "stiffness", r"spring 'S'.*m\.remove\('S'\)"),
    "field of a load": (lambda m: m["S"], "name", r"spring 'S'.*m\.remove\('S'\)"),
    "joint": (lambda m: m["B"], "a", r"revolute 'B'.*m\.remove\('B'\)"),
    "limit": (lambda m: m["stop"], "lower", r"limit 'stop'.*m\.remove\('stop'\)"),
    "frame": (lambda m: m["a"].frame(), "origin", r"frame on body 'a'.*body\.frame"),
    "point": (lambda m: m["a"].point(), "x", r"point on body 'a'.*body\.point"),
    "vector": (lambda m: m["a"].vector(0, 0, 1), "components", r"direction on body 'a'.*body\.vector"),
    "shape": (lambda m: m["a"].attach(cd.shapes.sphere(0.1)), "color", r"attachment on body 'a'.*body\.detach"),
}


@pytest.mark.parametrize("case", PARTS)
def test_setting_an_attribute_of_a_part_names_the_part_and_the_way_out(case):
    m = arm()
    make, word, match = PARTS[case]
    part = make(m)
    for change in (lambda: setattr(part, word, 5.0), lambda: delattr(part, word)):
        with pytest.raises(cd.ModelError, match=f"'{word}' of .*{match}") as refused:
            change()
        assert isinstance(refused.value, AttributeError)
    assert copy.deepcopy(part) is not None and pickle.loads(pickle.dumps(m)) == m == m.copy()


def test_the_name_of_a_parameter_cannot_be_set():
    with pytest.raises(AttributeError):
        arm()["L"].name = "M"


@pytest.mark.parametrize("mode", ["kinematic", "dynamic"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_sessions_and_hands_refuse_copies_and_a_record_is_copied(copied, mode):
    m = arm()
    session = m.session(mode=mode)
    record = session.record()
    hand = session.grasp("b")
    for item, match in ((session, "Session.*session.state"), (hand, "hand on 'b'")):
        with pytest.raises(cd.SessionError, match=match):
            copied(item)
    hand.target = (1.0, 0.2, 0.0)
    session.step()
    assert copied(session.state) is not None and copied(record.stop()) is not None


def test_the_effort_of_a_coupling_refers_to_its_reaction():
    m = arm()
    m.gear("pair", m["A"], m["B"], ratio=2.0)
    simulation = m.simulate(0.01)
    with pytest.raises(cd.ModelError, match=r"'pair' is a gear.*reaction\('pair'\)"):
        simulation.effort("pair")
    assert simulation.reaction("pair").torque.shape == (101, 3)
