"""Rates, accelerations, traces and columns of results: closed forms, differences, and one spelling for all of them."""

from __future__ import annotations

import csv
import math
import pickle

import numpy as np
import pytest

import cardan as cd


def slider_crank(r=0.1, rod=0.3, w=7.0):
    m = cd.Mechanism("slider-crank")
    crank = m.body("crank", mass=1.0, inertia=0.01 * np.eye(3))
    link = m.body("link", position=(r, 0, 0), mass=1.0, inertia=0.01 * np.eye(3))
    slider = m.body("slider", position=(r + rod, 0, 0), mass=1.0, inertia=0.01 * np.eye(3))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((r, 0, 0)), link.frame())
    m.revolute("C", link.frame((rod, 0, 0)), slider.frame())
    m.prismatic("slide", m.ground.frame(z=(1, 0, 0)), slider.frame(z=(1, 0, 0)))
    m.drive("motor", m["A"], lambda t: w * t)
    return m


def piston(t, r=0.1, rod=0.3, w=7.0):
    """x = r cos φ + √(L² − r² sin² φ), and its derivatives."""
    s, c = np.sin(w * t), np.cos(w * t)
    root = np.sqrt(rod**2 - (r * s) ** 2)
    first = -(r**2) * s * c / root
    second = -(r**2) * (c * c - s * s) / root - first**2 / root
    return r * c + root, w * (-r * s + first), w * w * (-r * c + second)


@pytest.mark.parametrize("verb", ["move", "simulate"])
def test_rates_of_a_slider_crank_are_those_of_the_closed_form(verb):
    m = slider_crank()
    times = np.linspace(0.0, 0.9, 31)
    result = m.move(times) if verb == "move" else m.simulate(0.9, times=times, rtol=1e-10)
    assert result.ok
    x, dx, ddx = piston(times)
    bar = 1e-12 if verb == "move" else 1e-8  # the closed form is exact; a simulation meets rtol in every step
    assert np.abs(result.coordinate("slide") - x).max() <= bar
    assert np.abs(result.rate("slide") - dx).max() <= 10 * bar
    assert np.abs(result.acceleration("slide") - ddx).max() <= 100 * bar
    assert np.abs(result.rate("A") - 7.0).max() <= 100 * bar
    for k, state in enumerate(result.states):
        assert state.rate("slide") == pytest.approx(result.rate(m["slide"])[k], abs=1e-12)
        assert state.acceleration(m["slide"].of("displacement")) == pytest.approx(result.acceleration("slide")[k])


def tumbling():
    """Two bodies that move freely in space, so that no coordinate between them is simple."""
    m = cd.Mechanism("tumbling", gravity=(0.3, -0.2, -1.0))
    for name, position, turn in (
        ("one", (0.4, 0.1, -0.2), (0.9, 0.1, 0.3, 0.2)),
        ("two", (-0.3, 0.8, 0.5), (1, 0, 0, 0)),
    ):
        m.body(name, position=position, orientation=turn, mass=1.3, inertia=np.diag([0.2, 0.3, 0.4]))
    rates = np.array([[0.2, -0.4, 0.9, 1.1, -0.7, 0.5], [-0.6, 0.2, 0.1, -0.4, 0.8, 1.3]])
    return m, m.state.with_rates(rates)


KINDS = ("angle", "displacement", "x", "y", "distance", "inclination")


@pytest.mark.parametrize("ends", [("one", "two"), ("ground", "two"), ("two", "ground")])
def test_rates_of_every_kind_of_coordinate_are_its_differences(ends):
    """Central differences of fourth order over 2h have the error c h⁴; rounding is 1e-16/h and 1e-16/h²."""
    m, start = tumbling()
    h = 1e-3
    sim = m.simulate(0.5, start, times=0.25 + h * np.arange(-2, 3), rtol=1e-13)
    a = m[ends[0]].frame((0.1, -0.2, 0.3), z=(0.3, 0.5, 1.0))
    b = m[ends[1]].frame((-0.4, 0.1, 0.2), z=(1.0, -0.4, 0.2))
    for kind in KINDS:
        one = cd.coordinate(a, b, kind)
        f = sim.coordinate(one)
        rate = (f[0] - 8 * f[1] + 8 * f[3] - f[4]) / (12 * h)
        acceleration = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * h * h)
        assert abs(sim.rate(one)[2] - rate) <= 1e-9, kind
        assert abs(sim.acceleration(one)[2] - acceleration) <= 1e-6, kind
        state = sim.states[2]
        assert state.rate(one) == pytest.approx(sim.rate(one)[2], rel=1e-12)
        assert state.acceleration(one) == pytest.approx(sim.acceleration(one)[2], rel=1e-12)


def test_undefined_rates_are_not_numbers():
    m = cd.Mechanism()
    b = m.body("b")
    state = m.state.with_rates([[1.0, 0, 0, 0, 0, 1.0]], np.zeros((1, 6)))
    for kind, end in (("distance", b.point()), ("inclination", b.frame())):
        one = cd.coordinate(m.ground.frame(), end, kind)
        assert math.isnan(state.rate(one)) and math.isnan(state.acceleration(one))
    assert math.isnan(state.rate(cd.coordinate(m.ground.frame(), b.frame(z=(1, 0, 0), x=(0, 0, 1)), "angle")))
    assert state.rate(cd.coordinate(m.ground.frame(), b.frame(), "x")) == 1.0


def test_a_joint_with_several_coordinates_is_asked_for_one():
    m = cd.Mechanism()
    arm = m.body("arm", mass=1.0, inertia=np.eye(3))
    pin = m.cylindrical("pin", m.ground.frame(), arm.frame())
    m.drive("push", pin.of("displacement"), lambda t: 0.1 * t * t)
    m.drive("turn", pin.of("angle"), lambda t: 3 * t)
    times = np.linspace(0, 1, 5)
    for result in (m.move(times), m.simulate(1.0, times=times)):
        for given in (("pin.angle",), ("pin", "angle"), (pin, "angle"), (pin.of("angle"),)):
            assert np.abs(result.rate(*given) - 3.0).max() <= 1e-12
            assert result.states[1].rate(*given) == pytest.approx(3.0)
        assert np.abs(result.acceleration("pin", "displacement") - 0.2).max() <= 1e-9
        with pytest.raises(cd.ModelError, match="'angle', 'displacement'; name one of them"):
            result.rate("pin")
        with pytest.raises(cd.ModelError, match="no joint is named 'pn'; did you mean 'pin'"):
            result.acceleration("pn")
        titles = list(result.table("pin", "rate(pin.angle)", "accelerations", "effort(push)"))
        assert titles == [
            *("t [s]", "pin.angle [rad]", "pin.displacement [m]", "rate(pin.angle) [rad/s]"),
            *("acceleration(pin.angle) [rad/s²]", "acceleration(pin.displacement) [m/s²]", "effort(push) [N]"),
        ]
    with pytest.raises(cd.ModelError, match=r"no velocities.*m\.solve_rates"):
        m.state.rate("pin.angle")
    rated = m.solve_rates(m.assemble().state)
    assert rated.rate("pin.angle") == pytest.approx(3.0)
    with pytest.raises(cd.ModelError, match="no accelerations"):
        rated.acceleration("pin.angle")


@pytest.mark.parametrize("verb", ["move", "simulate"])
def test_a_trace_is_the_path_of_a_point_as_seen_from_any_body(verb):
    m = slider_crank()
    times = np.linspace(0.0, 0.5, 7)
    result = m.move(times) if verb == "move" else m.simulate(0.5, times=times)
    place = (0.15, 0.02, -0.01)
    expected = np.array([state["link"].point(place) for state in result.states])
    for given in ((m["link"].point(place),), ("link", place), (m["link"], place), (m["link"].frame(place),)):
        assert np.abs(result.trace(*given) - expected).max() <= 1e-15
    assert np.array_equal(result.trace("link"), result.positions("link"))
    assert np.array_equal(result.trace(m.ground.point((1, 2, 3))), np.tile([1.0, 2.0, 3.0], (7, 1)))
    for seen, state in zip(result.trace("link", place, relative_to="crank"), result.states, strict=True):
        assert np.abs(state["crank"].point(seen) - state["link"].point(place)).max() <= 1e-15
    frame = m["crank"].frame((0.1, 0, 0), z=(0, 1, 0), x=(0, 0, 1))
    axes = np.array([(0, 0, 1), (1, 0, 0), (0, 1, 0)])  # y = z × x
    assert (
        np.abs(
            result.trace("link", place, relative_to=frame)
            - (result.trace("link", place, relative_to="crank") - [0.1, 0, 0]) @ axes.T
        ).max()
        <= 1e-15
    )
    assert np.array_equal(result.trace("link", place, relative_to="ground"), result.trace("link", place))
    with pytest.raises(cd.ModelError, match="'lnk'; did you mean 'link'"):
        result.trace("lnk")
    with pytest.raises(cd.ModelError, match="a place belongs to a body"):
        result.trace(m["link"].point(), place)
    with pytest.raises(cd.ModelError, match="the place of trace has 2 numbers"):
        result.trace("link", (1, 2))


def test_a_trace_refuses_points_of_a_mechanism_that_differs():
    m, other = slider_crank(), slider_crank(rod=0.4)
    motion = m.move([0.0, 0.1])
    assert np.array_equal(motion.trace(m.copy()["link"].point()), motion.trace("link"))
    with pytest.raises(cd.ModelError, match=r"another mechanism \('slider-crank'\)"):
        motion.trace(other["slider"].point())


def test_a_name_means_the_joint_that_the_result_was_computed_with():
    m = cd.Mechanism()
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(), arm.frame())
    m.drive("motor", m["A"], lambda t: t)
    motion = m.move([0.0, 0.5])
    m.remove("motor")
    m.remove("A")
    m.revolute("A", m.ground.frame(x=(0, 1, 0)), arm.frame(x=(-1, 0, 0)))
    assert motion.coordinate("A")[-1] == pytest.approx(0.5)
    assert motion.states[-1].coordinate("A") == pytest.approx(0.5)


def test_traces_with_parameters_have_their_values():
    m = cd.Mechanism()
    L = m.parameter("L", 0.5)
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(), arm.frame())
    m.drive("motor", m["A"], lambda t: t)
    tip = arm.point((2 * L, 0, 0))
    motion = m.move([0.0, 1.0])
    assert motion.trace(tip)[-1] == pytest.approx([math.cos(1.0), math.sin(1.0), 0.0])


def test_columns_are_read_by_name_in_tables_files_and_pictures(tmp_path):
    m = slider_crank()
    times = np.linspace(0, 0.4, 5)
    m.spring("spring", m["slide"], stiffness=10.0)
    motion, sim = m.move(times), m.simulate(0.4, times=times)
    chosen = ("slide", "rate(slide)", "acceleration(slide)", "effort(motor)", "effort(spring)")
    titles = ["t [s]", "slide [m]", "rate(slide) [m/s]", "acceleration(slide) [m/s²]", "effort(motor) [N m]"]
    for result in (motion, sim):
        table = result.table(*chosen)
        assert list(table) == [*titles, "effort(spring) [N]"]
        assert np.array_equal(table["rate(slide) [m/s]"], result.rate("slide"))
        assert np.array_equal(table["acceleration(slide) [m/s²]"], result.acceleration("slide"))
        assert np.array_equal(table["effort(motor) [N m]"], result.effort("motor"))
        result.save(tmp_path / "run.csv", columns=chosen)
        with (tmp_path / "run.csv").open(encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        assert head == list(table)
        assert np.array_equal(np.array(rows, dtype=float).T, np.array(list(table.values())))
        every = list(result.table("coordinates", "rates", "efforts"))
        assert every[1:5] == ["A [rad]", "B [rad]", "C [rad]", "slide [m]"]
        assert every[-2:] == ["effort(motor) [N m]", "effort(spring) [N]"]
        assert list(result.table("poses", "velocities"))[1:3] == ["crank x [m]", "crank y [m]"]
    assert "kinetic [J]" in sim.table("energies")
    with pytest.raises(cd.ModelError, match="no energies"):
        motion.table("energies")
    with pytest.raises(cd.ModelError, match="columns were given"):
        motion.save(tmp_path / "run.html", columns=["slide"])
    with pytest.raises(cd.ModelError, match="'slid'; did you mean 'slide'"):
        motion.table("slid")
    with pytest.raises(cd.ModelError, match="reaction"):
        motion.table("effort(A)")
    pytest.importorskip("matplotlib")
    labels = [axes.get_ylabel() for axes in motion.plot(*chosen, "poses").axes]
    assert labels[:5] == ["displacement [m]", "rate [m/s]", "acceleration [m/s²]", "effort [N m]", "effort [N]"]
    line = motion.plot("rate(slide)").axes[0].get_lines()[0]
    assert np.array_equal(line.get_ydata(), motion.rate("slide")) and line.get_label() == "rate(slide)"


def test_no_column_is_lost_where_two_coordinates_have_one_title():
    m = slider_crank()
    motion = m.move([0.0, 0.1])
    pair = [cd.coordinate(m.ground.point((k, 0, 0)), m["link"].point(), "distance") for k in (1.0, 2.0)]
    table = motion.table(*pair, pair[0])
    assert list(table)[1:] == ["distance of ground – link [m]", "distance of ground – link [m] (2)"]
    assert np.array_equal(table["distance of ground – link [m] (2)"], motion.coordinate(pair[1]))


def test_pickled_results_read_joints_that_are_passed_themselves():
    m = slider_crank()
    m.remove("motor")  # its function cannot be pickled
    sim = m.simulate(0.01)
    kept = pickle.loads(pickle.dumps(sim))
    assert np.array_equal(kept.rate(m["A"]), sim.rate("A"))
    for read in (lambda: kept.rate("A"), lambda: kept.states[0].rate("A"), lambda: kept.table("rates")):
        with pytest.raises(cd.ModelError, match="was pickled"):
            read()


def test_results_without_states_have_empty_readings():
    m = slider_crank()
    m.distance("rope", m["slider"].point((1, 0, 0)), m.ground.point((9, 0, 0)), 1.0)
    for result in (m.move([0.0, 0.1]), m.simulate(0.1)):
        assert result.rate("A").shape == (0,) and result.trace("link").shape == (0, 3)
