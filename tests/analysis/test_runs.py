"""Many motions and simulations have the numbers of single ones, for any number of threads, and keep what is wanted."""

from __future__ import annotations

import pickle
import threading
import time

import numpy as np
import pytest

import cardan as cd
from layers import sampled

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def crank_rocker():
    """A planar four-bar with lengths as parameters, rods of 1 kg, and a damper."""
    m = cd.Mechanism("crank-rocker", gravity=(0.0, -9.81, 0.0))
    a, b, c = (m.parameter(name, value, lower=0.1) for name, value in (("a", 1.0), ("b", 3.0), ("c", 2.5)))
    rods = [
        m.body(name, position=at, mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
        for name, at in (("crank", (0, 0, 0)), ("coupler", (1, 0, 0)), ("rocker", (3, 0, 0)))
    ]
    crank, coupler, rocker = rods
    m.revolute("A", m.ground.frame(x=X), crank.frame(x=X))
    m.revolute("B", crank.frame((a, 0, 0), x=X), coupler.frame(x=X))
    m.revolute("C", coupler.frame((b, 0, 0), x=X), rocker.frame((c, 0, 0), x=X))
    m.revolute("D", m.ground.frame((3, 0, 0), x=X), rocker.frame(x=X))
    m.spring("drag", m["A"], stiffness=0.2, damping=0.4)
    return m, {"a": np.linspace(0.8, 1.2, 7), "b": np.linspace(3.1, 2.9, 7)}


def driven():
    m, values = crank_rocker()
    m.drive("motor", m["A"], lambda t: 0.3 + 2.0 * t)
    return m, values


def falling():
    """A weight that falls on a floor, whose depth is a parameter."""
    m = cd.Mechanism("falling")
    depth = m.parameter("depth", 0.3, lower=0.0)
    part = m.body("part", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.prismatic("slide", m.ground.frame((0, 0, -depth)), part.frame())
    m.limit("floor", m["slide"], lower=0.0, upper=5.0)
    return m, {"depth": np.linspace(0.1, 0.5, 7)}


OF_ALL = ("A", "rate(B)", "max(acceleration(A))", "rms(force(B))", "max(torque(D))", "mean(x(coupler))", "final(state)")
CASES = {
    "damped": (crank_rocker, {"step": 2e-3}, (*OF_ALL, "final(energy)", "min(effort(drag))", "time(A > 0.2)")),
    "driven": (driven, {"step": 2e-3}, (*OF_ALL, "max(effort(motor))", "kinetic")),
    "by tolerance": (crank_rocker, {"rtol": 1e-7}, (*OF_ALL, "max(potential)")),
    "limits": (falling, {"step": 1e-3}, ("slide", "time(floor)", "max(effort(floor))", "final(slide)")),
}


def expected(simulation, name):
    """An output by the methods of a single result, in NumPy."""
    word, _, rest = name.rstrip(")").partition("(")
    if word in ("max", "min", "mean", "rms", "final"):
        values = expected(simulation, rest + ")" if "(" in rest else rest)
        if word in ("max", "min"):
            return getattr(np, word)(values, axis=0)
        if word == "final":
            return values[-1]
        powers, t = (values if word == "mean" else values**2), simulation.times
        found = (np.diff(t) @ (powers[1:] + powers[:-1])) / (2 * (t[-1] - t[0]))
        return found if word == "mean" else np.sqrt(found)
    if word in ("rate", "acceleration", "effort"):
        return getattr(simulation, word)(rest)
    if word in ("force", "torque"):
        return np.linalg.norm(getattr(simulation.reaction(rest), word), axis=1)
    if word in ("kinetic", "potential", "energy"):
        return getattr(simulation.energy, "total" if word == "energy" else word)
    if word == "x":
        return simulation.positions(rest)[:, 0]
    if word == "state":
        return np.array([state.coordinates for state in simulation.states])
    if word == "time" and ">" not in rest:
        return simulation.events[0].time
    return simulation.coordinate(name)


@sampled("case", list(CASES), keep=4)
def test_every_run_has_the_numbers_of_a_single_one(case):
    build, options, outputs = CASES[case]
    m, values = build()
    found = [m.simulate_many(0.5, values=values, outputs=outputs, workers=w, **options) for w in (1, 2, 3)]
    assert found[0] == found[1] == found[2]
    runs = found[0]
    assert runs.ok.all(), runs.text()
    for k in (0, 3, 6):
        start = m.state.with_variables({name: float(own[k]) for name, own in values.items()})
        alone = m.simulate(0.5, start, **options)
        assert runs.again(k) == alone == m.simulate(0.5, runs.start(k), **options)
        assert runs.notes[k] == alone.notes
        for name in outputs:
            if name.startswith(("mean", "rms")):  # another order of the sum
                assert runs[name][k] == pytest.approx(expected(alone, name), rel=1e-13)
            elif ">" not in name:
                assert np.array_equal(runs[name][k], expected(alone, name)), name


def test_driven_motions_have_the_numbers_of_single_ones():
    m, values = driven()
    times = np.linspace(0.0, 1.0, 11)
    outputs = ("B", "rate(D)", "max(effort(motor))", "y(rocker)", ("final", m["coupler"].point((1, 0, 0))))
    found = [m.move_many(times, values=values, outputs=outputs, workers=w) for w in (1, 2)]
    assert found[0] == found[1] and found[0].ok.all()
    for k in (0, 6):
        alone = m.move(times, found[0].start(k))
        assert np.array_equal(found[0]["B"][k], alone.coordinate("B"))
        assert np.array_equal(found[0]["rate(D)"][k], alone.rate("D"))
        assert found[0]["max(effort(motor))"][k] == alone.effort("motor").max()
        assert np.array_equal(found[0]["final(position(coupler))"][k], alone.trace(m["coupler"].point((1, 0, 0)))[-1])


def test_states_with_velocities_are_the_starts():
    m, _ = crank_rocker()
    states = [m.solve_rates(m.assemble().state, {"A": rate}) for rate in (0.0, 1.0, 2.0)]
    runs = m.simulate_many(0.2, states=states, outputs=["A"], step=1e-3, workers=2)
    for k, state in enumerate(states):
        assert np.array_equal(runs["A"][k], m.simulate(0.2, state, step=1e-3).coordinate("A"))
    both = m.simulate_many(0.2, states=states, values={"a": [1.0, 1.0, 1.0]}, outputs=["A"], step=1e-3)
    assert np.array_equal(both["A"], runs["A"])


def test_reductions_are_those_of_closed_forms():
    """A slide that is driven by x = t² over 0 … 2 s: mean 4/3, rms √(16/5), and x = 1 at t = 1."""
    m = cd.Mechanism("driven slide")
    part = m.body("part", mass=2.0)
    m.prismatic("slide", m.ground.frame(), part.frame())
    m.drive("push", m["slide"], lambda t: t * t)
    outputs = [f"{word}(slide)" for word in ("max", "min", "mean", "rms", "first", "final")]
    outputs += ["time(slide > 1)", "time(slide < -1)", "max(effort(push))"]
    runs = m.simulate_many(2.0, states=[m.state], outputs=outputs, step=1e-3)
    found = [float(runs[label][0]) for label in runs.labels]
    wanted = [4.0, 0.0, 4 / 3, np.sqrt(16 / 5), 0.0, 4.0, 1.0, np.nan, 2.0 * (9.81 + 2.0)]
    assert found == pytest.approx(wanted, abs=3e-6, nan_ok=True)


def test_the_time_of_an_impact_is_that_of_free_fall():
    m, values = falling()
    runs = m.simulate_many(1.0, values=values, outputs=["time(floor)"], step=1e-3, workers=2)
    assert runs.ok.all()
    assert np.abs(runs["time(floor)"] - np.sqrt(2 * values["depth"] / 9.81)).max() <= 1e-9


def test_a_function_of_the_simulation_and_names_of_outputs():
    m, values = crank_rocker()
    outputs = {"swing": lambda sim: np.ptp(sim.coordinate("D")), "top": ("max", "y(rocker)"), "last": "final(A)"}
    runs = m.simulate_many(0.3, values=values, outputs=outputs, step=2e-3, workers=2)
    alone = m.simulate(0.3, runs.start(2), step=2e-3)
    assert runs.labels == ("swing", "top", "last")
    assert runs["swing"][2] == np.ptp(alone.coordinate("D")) and runs["last"][2] == alone.coordinate("A")[-1]


# -- runs that fail ----------------------------------------------------------------------------------------------------


def test_a_run_that_cannot_be_assembled_is_named_and_the_others_are_finished():
    m, _ = crank_rocker()
    values = {"b": [3.0, 9.0, 3.1]}
    runs = m.simulate_many(0.1, values=values, outputs=["final(A)"], step=1e-3, workers=2)
    assert runs.status.tolist() == ["done", "not assembled", "done"]
    (failure,) = runs.failed
    assert failure.run == 1 and failure.values == {"b": 9.0} and "t = 0 s" in failure.reason
    assert np.isnan(runs["final(A)"]).tolist() == [False, True, False]
    assert "run 1: not assembled" in runs.text()
    assert not runs.again(1).ok


def test_an_error_of_a_function_of_the_user_belongs_to_its_run():
    m, values = crank_rocker()

    def odd(simulation):
        if simulation.coordinate("A")[-1] < first:
            raise RuntimeError("odd")
        return 1.0

    first = np.median(m.simulate_many(0.1, values=values, outputs=["final(A)"], step=1e-3)["final(A)"])
    runs = m.simulate_many(0.1, values=values, outputs=[odd], step=1e-3, workers=2)
    assert runs.counts() == {"done": 4, "error": 3}
    assert {one.reason for one in runs.failed} == {"RuntimeError: odd"}


def test_a_run_that_ends_early_has_what_it_reached():
    m = cd.Mechanism("ends")
    length = m.parameter("length", 1.0)
    m.prismatic("slide", m.ground.frame((length, 0, 0)), m.body("part", mass=1.0).frame())
    m.drive("push", m["slide"], cd.spline([0.0, 0.5, 1.0], [0.0, 0.1, 0.0]))
    runs = m.simulate_many(2.0, values={"length": [0.0, 1.0]}, outputs=["slide", "max(slide)"], step=0.01)
    assert runs.status.tolist() == ["undefined"] * 2 and runs["slide"].shape == (2, 201)
    assert np.isfinite(runs["slide"][:, :101]).all() and np.isnan(runs["slide"][:, 101:]).all()
    assert runs["max(slide)"] == pytest.approx([0.1, 0.1], abs=1e-3)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_the_runs_that_were_finished(workers):
    m, _ = crank_rocker()
    values = {"a": np.linspace(0.8, 1.2, 60)}

    def stop(done, total):
        if done >= total // 2:
            raise KeyboardInterrupt

    whole = m.simulate_many(0.3, values=values, outputs=["final(A)"], step=1e-3)
    runs = m.simulate_many(0.3, values=values, outputs=["final(A)"], step=1e-3, workers=workers, progress=stop)
    kept = runs.ok
    assert 30 <= kept.sum() < 60 and set(runs.status[~kept]) == {"interrupted"}
    assert np.array_equal(runs["final(A)"][kept], whole["final(A)"][kept]) and np.isnan(runs["final(A)"][~kept]).all()


def test_max_seconds_is_for_all_runs_together():
    m, _ = crank_rocker()
    began = time.perf_counter()
    runs = m.simulate_many(50.0, values={"a": np.linspace(0.8, 1.2, 400)}, step=1e-3, max_seconds=0.3, workers=2)
    assert time.perf_counter() - began < 10.0
    assert set(runs.counts()) <= {"done", "time limit"} and runs.status[-1] == "time limit"


def test_another_thread_may_edit_the_mechanism_meanwhile():
    m, values = crank_rocker()
    whole = m.simulate_many(0.3, values=values, outputs=["final(A)"], step=1e-3)
    edit = threading.Timer(0.01, lambda: setattr(m["crank"], "mass", 5.0))
    edit.start()
    runs = m.simulate_many(0.3, values=values, outputs=["final(A)"], step=1e-3, workers=2)
    edit.join()
    assert np.array_equal(runs["final(A)"], whole["final(A)"])


def test_runs_are_pickled_and_make_a_table():
    m, values = crank_rocker()
    runs = m.simulate_many(0.05, values=values, outputs=["final(A)", "final(state)"], step=1e-3)
    again = pickle.loads(pickle.dumps(runs))
    assert again == runs and again.text() == runs.text()
    with pytest.raises(cd.ModelError, match="pickled"):
        again.again(0)
    table = runs.table()
    assert list(table)[:3] == ["a", "b", "final(A) [rad]"] and list(table)[-2:] == ["status", "reason"]
    assert np.array_equal(table["final(state) 0"], runs["final(state)"][:, 0, 0])
    assert "<table>" in runs._repr_html_()


REFUSED = {
    "no runs": ({}, "values="),
    "another parameter": ({"values": {"q": [1.0]}}, "'q'"),
    "no numbers": ({"values": {"a": ["x"]}}, "'a'"),
    "not finite": ({"values": {"a": [1.0, np.nan]}}, "'a'"),
    "sizes that differ": ({"values": {"a": [1.0, 1.0], "b": [3.0]}}, "2 for 'a', 1 for 'b'"),
    "out of bounds": ({"values": {"a": [1.0, 0.05]}}, "start 1"),
    "states and values": ({"values": {"a": [1.0]}, "states": "two"}, "1 numbers for 'a', but there are 2 states"),
    "states of another": ({"states": ["x"]}, r"states\[0\]"),
    "an output": ({"values": {"a": [1.0]}, "outputs": ["max(effort(motr))"]}, "motr"),
    "a joint": ({"values": {"a": [1.0]}, "outputs": ["E"]}, "'E'"),
    "a body": ({"values": {"a": [1.0]}, "outputs": ["x(crnk)"]}, "crank"),
    "a reduction": ({"values": {"a": [1.0]}, "outputs": ["median(A)"]}, "median"),
    "a condition": ({"values": {"a": [1.0]}, "outputs": ["time(A > x)"]}, "'x'"),
    "an event": ({"values": {"a": [1.0]}, "outputs": ["time(stop)"]}, "stop"),
    "the same twice": ({"values": {"a": [1.0]}, "outputs": ["A", "A"]}, "names"),
    "workers": ({"values": {"a": [1.0]}, "workers": 0}, "workers"),
    "progress": ({"values": {"a": [1.0]}, "progress": 3}, "progress"),
    "too much": ({"values": {"a": [1.0] * 10_000}, "outputs": ["state"], "step": 1e-6}, "memory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_name_the_item(case):
    options, text = REFUSED[case]
    m, _ = crank_rocker()
    if options.get("states") == "two":
        options = {**options, "states": [m.state] * 2}
    with pytest.raises(cd.ModelError, match=text):
        m.simulate_many(0.1, **options)


@pytest.mark.parametrize("output", ["energy", "time(A)"])
def test_driven_motions_refuse_what_they_do_not_have(output):
    m, values = driven()
    with pytest.raises(cd.ModelError, match=output.replace("(", r"\(").replace(")", r"\)")):
        m.move_many([0.0, 0.1], values=values, outputs=[output])
