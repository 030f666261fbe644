"""Saved results: what is loaded is what was saved, to the last bit; files that are damaged or hostile are refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import struct
import zipfile
from dataclasses import fields

import numpy as np
import pytest

import cardan as cd
from cardan.dynamics.build import equations_of
from cardan.files import container, mjcf, urdf
from cardan.files.loaded_results import reframed
from cardan.files.results import RESULTS, to_bytes


def spinning(t):
    return 0.4 * cd.sin(3 * t) + t**2


def machine():
    """A slider-crank with a parameter, loads, a limit, an inclined inertia and a driver."""
    m = cd.Mechanism("machine", gravity=(0.1, -9.81, 0.0))
    r = m.parameter("r", 0.1)
    turned = np.array([[0.03, 0.004, 0.0], [0.004, 0.02, 0.001], [0.0, 0.001, 0.025]])
    crank = m.body("crank", mass=1.0, inertia=(0.01, 0.02, 0.02))
    link = m.body("link", position=(0.1, 0, 0), mass=0.7, inertia=turned, center=(0.1, 0.01, 0))
    slider = m.body("slider", position=(0.4, 0, 0), mass=2.0, inertia=(0.01, 0.01, 0.01))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((r, 0, 0)), link.frame())
    m.revolute("C", link.frame((0.3, 0, 0)), slider.frame())
    m.prismatic("slide", m.ground.frame(z=(1, 0, 0)), slider.frame(z=(1, 0, 0)))
    m.limit("stop", "slide", lower=-1.0, upper=1.0)
    m.drive("motor", "A", spinning)
    m.spring("spring", "slide", stiffness=30.0, rest=0.3, damping=1.0)
    m.force("push", slider.point(), lambda t, state: (cd.sin(t), 0.0, 0.0))
    return m


def rolling():
    """A contact with a rate row."""
    m = cd.Mechanism("rolling")
    ball = m.body("ball", position=(0, 0, 0.1), mass=1.0, inertia=(0.004, 0.004, 0.004))
    road = m.ground.attach(cd.geometry.plane())
    m.contact("on", road, ball.attach(cd.geometry.sphere(0.1)), mode="roll")
    return m


def results():
    m = machine()
    state = m.assemble().state
    swing = cd.Mechanism("swing")
    rod = swing.body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1), center=(0.3, 0, -0.1))
    swing.revolute("A", swing.ground.frame(z=(0, 1, 0)), rod.frame(z=(0, 1, 0)))
    rest = swing.equilibrium()
    ball = rolling()
    start = ball.solve_rates(ball.assemble().state)
    wrong = machine()
    wrong.distance("rope", wrong["slider"].point(), wrong.ground.point((9, 0, 0)), 1.0)
    return {
        "assembly": m.assemble(),
        "assembly at a time": m.assemble(time=0.2),
        "free parameter": m.assemble(free=["r"], time=0.3),
        "conflict": wrong.assemble(),
        "batch": m.assemble_many([m.state, state, m.state]),
        "batch of values": m.assemble_many([state] * 3, values={"r": np.array([0.1, 0.11, 0.12])}),
        "motion": m.move(np.linspace(0, 1, 7)),
        "motion that did not assemble": wrong.move([0.0, 0.1]),
        "motion at other values": m.move([0.0, 0.1], state.with_variables({"r": 0.12})),
        "simulation": m.simulate(0.3, times=np.linspace(0, 0.3, 5)),
        "simulation with a contact": ball.simulate(0.2, start, step=1e-2),
        "equilibrium": rest,
        "linearization": swing.linearize(rest.state),
        "diagnosis": m.diagnose(state),
        "diagnosis of an open pose": m.diagnose(m.state.moved({"link": ((0, 1, 0), (1, 0, 0, 0))})),
        "sensitivity": m.sensitivity(state, ["slide", m["link"].point((0.1, 0, 0))]),
        "tolerances": m.tolerances(state, ["slide"], {"r": 1e-3}, samples=50),
        "state": m.move([0.0, 0.2]).states[-1],
    }


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    found = {}
    for name, result in results().items():
        for suffix in container.SUFFIXES:
            path = folder / f"{name}{suffix}"
            result.save(path)
            found[name, suffix] = (result, cd.load_result(path))
    return found


def same(a, b, where=""):
    """Whether two values are equal to the last bit, with NaN equal to NaN."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), where
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}[{k}]")
    elif isinstance(a, float):
        assert struct.pack("d", a) == struct.pack("d", b), where
    else:
        assert a == b, where


CASES = [
    *("assembly", "assembly at a time", "free parameter", "conflict", "batch", "batch of values", "motion"),
    *("motion that did not assemble", "motion at other values", "simulation", "simulation with a contact"),
    *("equilibrium", "linearization", "diagnosis", "diagnosis of an open pose", "sensitivity", "tolerances", "state"),
]


@pytest.mark.parametrize("suffix", container.SUFFIXES)
@pytest.mark.parametrize("name", CASES)
def test_a_loaded_result_is_the_one_that_was_saved(saved, name, suffix):
    result, loaded = saved[name, suffix]
    assert type(loaded) is type(result)
    if type(result).__eq__ is not object.__eq__:
        assert loaded == result
    words = ("ok", "status", "reason", "notes", "worst", "residuals", "repairs", "active", "unconnected", "events")
    for word in (*words, "times"):
        if hasattr(result, word):
            same(getattr(loaded, word), getattr(result, word), word)
    if hasattr(result, "text"):
        assert loaded.text() == result.text()
    if hasattr(result, "to_dict"):
        same(loaded.to_dict(), result.to_dict())
    if hasattr(result, "__dataclass_fields__"):
        for field in fields(result):
            value = getattr(result, field.name)
            if (
                not field.name.startswith("_")
                and type(value) is not cd.State
                and not hasattr(value, "__dataclass_fields__")
            ):
                same(getattr(loaded, field.name), value, field.name)


@pytest.mark.parametrize("suffix", container.SUFFIXES)
@pytest.mark.parametrize("name", ["motion", "motion at other values", "simulation", "simulation with a contact"])
def test_what_is_read_of_a_loaded_result_is_the_same_to_the_last_bit(saved, name, suffix):
    result, loaded = saved[name, suffix]
    same(loaded.table(), result.table())
    for body in result.names:
        same(loaded.accelerations(body), result.accelerations(body))
        same(loaded.trace(body, (0.1, 0.2, 0.3)), result.trace(body, (0.1, 0.2, 0.3)))
    if name == "simulation with a contact":
        same(loaded.reaction("on").force, result.reaction("on").force)
        same(loaded.reaction("on.roll").force, result.reaction("on.roll").force)
        assert loaded.states[1].contact("on").gap == result.states[1].contact("on").gap
        return
    words = ("coordinates", "rates", "accelerations", "efforts")
    same(loaded.table(*words), result.table(*words))
    for joint in ("A", "C", "slide"):
        for one, other in zip(loaded.reaction(joint), result.reaction(joint), strict=True):
            assert np.array_equal(one, other)
    if name == "simulation":
        same(loaded.energy, result.energy)
        same(loaded.drift, result.drift)
    assert loaded.states[1].rate("slide") == result.states[1].rate("slide")


def test_states_of_loaded_results_know_joints_and_can_be_used_again(saved):
    result, loaded = saved["assembly", ".npz"]
    assert loaded.coordinate("slide") == result.coordinate("slide")
    m = machine()
    assert m.assemble(loaded.state).ok and m.simulate(0.01, saved["state", ".json"][1]).ok
    equilibrium, again = saved["equilibrium", ".npz"]
    same(again.reaction("A").force, equilibrium.reaction("A").force)
    batch, again = saved["batch of values", ".npz"]
    assert again.state(1) == batch.state(1) and np.array_equal(again.variable("r"), batch.variable("r"))


def test_every_result_has_a_case():
    made = {type(result).__name__ for result in results().values()}
    assert made == set(RESULTS)


def test_equal_results_are_equal_files():
    m = machine()
    for suffix in container.SUFFIXES:
        first, second = (to_bytes(suffix, m.move([0.0, 0.1])) for _ in range(2))
        assert first == second


def test_a_loaded_motion_is_drawn_and_saved_again(tmp_path):
    motion = machine().move(np.linspace(0, 0.5, 4))
    motion.save(tmp_path / "a.npz")
    loaded = cd.load_result(tmp_path / "a.npz")
    loaded.save(tmp_path / "b.npz")
    assert cd.load_result(tmp_path / "b.npz") == motion
    loaded.save(tmp_path / "b.csv")
    loaded.save(tmp_path / "b.html")
    assert (tmp_path / "b.html").stat().st_size > 1000


def test_gravity_and_parameters_are_those_of_the_result_not_of_the_mechanism_now(tmp_path):
    m = machine()
    results = {"move": m.move([0.0, 0.1, 0.2]), "simulate": m.simulate(0.1, step=1e-2)}
    efforts = {name: result.effort("motor") for name, result in results.items()}
    m.gravity = (0.0, 0.0, 0.0)
    m["r"].value = 0.2
    for name, result in results.items():
        result.save(tmp_path / "run.npz")
        loaded = cd.load_result(tmp_path / "run.npz")
        assert np.array_equal(loaded.effort("motor"), efforts[name])
        assert loaded.states[0].variables["r"] == 0.1


def test_a_result_of_a_mechanism_that_was_edited_is_refused_with_the_way_out(tmp_path):
    m = machine()
    motion, copy = m.move([0.0, 0.1]), m.copy()
    m.remove("spring")
    with pytest.raises(cd.ModelError, match="was edited since this result was computed; save results before"):
        motion.save(tmp_path / "run.npz")
    assert not (tmp_path / "run.npz").exists()
    motion.save(tmp_path / "run.npz", mechanism=copy)
    assert cd.load_result(tmp_path / "run.npz") == motion
    with pytest.raises(cd.ModelError, match="mechanism 'rolling' is not that of the result"):
        motion.save(tmp_path / "run.npz", mechanism=rolling())


def test_a_pickled_result_is_saved_with_its_mechanism(tmp_path):
    m = rolling()
    sim = pickle.loads(pickle.dumps(m.simulate(0.1, m.solve_rates(m.assemble().state), step=1e-2)))
    with pytest.raises(cd.ModelError, match="pickled, without its mechanism; pass it"):
        sim.save(tmp_path / "run.npz")
    sim.save(tmp_path / "run.npz", mechanism=m)
    assert cd.load_result(tmp_path / "run.npz") == sim


@pytest.mark.parametrize("suffix", container.SUFFIXES)
def test_a_model_that_cannot_be_written_is_passed_when_the_result_is_loaded(tmp_path, suffix):
    def build(length=1.0):
        m = cd.Mechanism("branching")
        arm = m.body("arm", mass=1.0, inertia=(1, 1, 1))
        m.revolute("A", m.ground.frame(), arm.frame((length, 0, 0)))
        m.drive("motor", "A", lambda t: t if t > -1 else -t)
        return m

    motion = build().move([0.0, 0.1])
    path = tmp_path / f"run{suffix}"
    motion.save(path)
    with pytest.raises(cd.FileError, match=r"it has no model \(.*cannot be recorded.*mechanism=m"):
        cd.load_result(path)
    m = build()
    loaded = cd.load_result(path, mechanism=m)
    assert np.array_equal(loaded.positions("arm"), motion.positions("arm"))
    assert np.array_equal(loaded.effort("motor"), motion.effort("motor"))
    with pytest.raises(cd.FileError, match="mechanism 'branching' is not that of the result: revolute 'A' differs"):
        cd.load_result(path, mechanism=build(1.1))
    with pytest.raises(cd.ModelError, match="mechanism 'rolling' is not that of the result"):
        cd.load_result(path, mechanism=rolling())


def test_a_simulation_with_inertias_of_joints_is_loaded(tmp_path):
    m = cd.Mechanism("flywheel")
    hinge = m.revolute("A", m.ground.frame(z=(0, 1, 0)), m.body("arm", mass=1.0, center=(1, 0, 0)).frame(z=(0, 1, 0)))
    hinge.inertia = 0.5
    sim = m.simulate(0.1, step=0.01)
    for suffix in container.SUFFIXES:
        sim.save(tmp_path / f"run{suffix}")
        loaded = cd.load_result(tmp_path / f"run{suffix}")
        assert loaded == sim
        assert np.array_equal(loaded.energy.kinetic, sim.energy.kinetic)


@pytest.mark.parametrize("change", ["mass", "center", "joint inertia", "spring"])
@pytest.mark.parametrize("verb", ["move", "simulate"])
def test_a_mechanism_with_other_masses_or_loads_is_refused(tmp_path, verb, change):
    """Efforts and energies of a result are computed when they are asked for, with the mechanism that is passed."""

    def build(changed=""):
        m = cd.Mechanism("arm")
        center = (0.5 if changed == "center" else 0.4, 0, 0)
        arm = m.body("arm", mass=2.0 if changed == "mass" else 1.0, center=center, inertia=(1, 1, 1))
        hinge = m.revolute("A", m.ground.frame(), arm.frame())
        hinge.inertia = 0.7 if changed == "joint inertia" else 0.5
        m.spring("spring", hinge, stiffness=7.0 if changed == "spring" else 5.0)
        m.drive("motor", "A", lambda t: t * t if t > -1 else -t)  # cannot be written
        return m

    m = build()
    result = m.move([0.0, 0.1]) if verb == "move" else m.simulate(0.1, step=0.05)
    result.save(tmp_path / "run.npz")
    loaded = cd.load_result(tmp_path / "run.npz", mechanism=build())
    assert np.array_equal(loaded.effort("motor"), result.effort("motor"))
    named = "(body 'arm'|revolute 'A'|spring 'spring') differs"
    with pytest.raises(cd.FileError, match=f"is not that of the result: {named}"):
        cd.load_result(tmp_path / "run.npz", mechanism=build(change))
    with pytest.raises(cd.ModelError, match="is not that of the result"):
        result.save(tmp_path / "other.npz", mechanism=build(change))
    result.save(tmp_path / "other.npz", mechanism=m.copy())


def arm(stiffness=2.0, at=(0.2, 0, 0)):
    """A driven arm with a spring, a force of time, and an inertia of its joint."""
    m = cd.Mechanism("c")
    body = m.body("arm", mass=1.0, center=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
    m.revolute("A", "ground", "arm", at=(0, 0, 0), axis=(0, 1, 0))
    m["A"].inertia = 0.3
    m.drive("d", "A", lambda t: t * t)
    m.spring("k", "A", stiffness=stiffness)
    m.force("push", body.point(at), lambda t, state: (cd.sin(t), 0.0, 0.0))
    return m


def with_(change, m=None):
    m = m or arm()
    change(m)
    return m


OTHERS = {
    "body 'arm' differs": [
        with_(lambda m: setattr(m["arm"], "mass", 9.0)),
        with_(lambda m: setattr(m["arm"], "center", (0.2, 0.1, 0))),
        with_(lambda m: setattr(m["arm"], "inertia", (0.01, 0.03, 0.03))),
    ],
    "revolute 'A' differs": [with_(lambda m: setattr(m["A"], "inertia", 0.4))],
    "spring 'k' differs": [arm(stiffness=2.1)],
    "force 'push' differs": [
        arm(at=(0.3, 0, 0)),
        with_(lambda m: (m.remove("push"), m.force("push", m["arm"].point((0.2, 0, 0)), (1.0, 0, 0)))),
        with_(lambda m: (m.remove("push"), m.force("push", m["arm"].point((0.2, 0, 0)), lambda t, s: (t, 0, 0)))),
    ],
    "spring 'k' is missing": [with_(lambda m: m.remove("k"))],
    "friction 'more' is not of the result": [with_(lambda m: m.friction("more", "A", viscous=1.0))],
}


@pytest.mark.parametrize("words", OTHERS)
def test_a_result_is_not_loaded_with_a_mechanism_that_differs(tmp_path, words):
    """Efforts follow from masses and loads of the mechanism: with others they would be wrong."""
    m = arm()
    free = arm()
    free.remove("d")
    for k, (result, prepare) in enumerate(
        [
            (m.move([0.0, 0.5, 1.0]), lambda other: other),
            (m.simulate(0.1, step=1e-2), lambda other: other),
            (free.equilibrium(), lambda other: with_(lambda own: own.remove("d"), other.copy())),
        ]
    ):
        path = tmp_path / f"{k}.npz"
        result.save(path)
        same = cd.load_result(path, mechanism=prepare(arm()))
        for loaded in (same, cd.load_result(path)):  # joint inertias are rows of the equations of motion alone
            assert loaded == result
            assert np.array_equal(loaded.effort("k"), result.effort("k"))
            assert np.array_equal(loaded.reaction("A").force, result.reaction("A").force)
        for other in OTHERS[words]:
            with pytest.raises(cd.FileError, match=f"mechanism 'c' is not that of the result: .*{words}"):
                cd.load_result(path, mechanism=prepare(other))
            with pytest.raises(cd.ModelError, match="mechanism 'c' is not that of the result: "):
                result.save(tmp_path / "other.npz", mechanism=prepare(other))


def test_a_result_is_loaded_with_a_mechanism_that_is_drawn_elsewhere_or_at_other_values(tmp_path):
    m = machine()
    motion = m.move([0.0, 0.1])
    motion.save(tmp_path / "run.npz")
    m["crank"].position, m["r"].value, m.gravity = (0.1, 0.2, 0), 0.11, (0, 0, 0)
    loaded = cd.load_result(tmp_path / "run.npz", mechanism=m)
    assert np.array_equal(loaded.effort("motor"), motion.effort("motor"))


def test_a_result_is_not_loaded_with_other_shapes_in_contact(tmp_path):
    m, other = rolling(), cd.Mechanism("rolling")
    ball = other.body("ball", position=(0, 0, 0.1), mass=1.0, inertia=(0.004, 0.004, 0.004))
    road = other.ground.attach(cd.geometry.plane())
    other.contact("on", road, ball.attach(cd.geometry.sphere(0.2)), mode="roll")
    m.assemble().save(tmp_path / "run.npz")
    assert cd.load_result(tmp_path / "run.npz", mechanism=rolling()) == m.assemble()
    with pytest.raises(cd.FileError, match="contact 'on' differs"):
        cd.load_result(tmp_path / "run.npz", mechanism=other)


def test_a_simulation_is_read_in_other_principal_frames():
    """Another computer may find other principal axes: the poses and rates of the bodies do not depend on them."""
    m = machine()
    sim = m.simulate(0.2, times=np.linspace(0, 0.2, 4))
    system = equations_of(m._model.drawing)[0].system
    frames = system.reference_frames.copy()
    rng = np.random.default_rng(3)
    turns = rng.standard_normal((3, 4))
    frames[:, 3:] = turns / np.linalg.norm(turns, axis=1)[:, None]
    frames[:, :3] += rng.standard_normal((3, 3))
    origin = system.origin + np.array([0.3, -0.2, 0.1])

    class Other:
        counted_angles, reference_frames = system.counted_angles, frames

    Other.origin = origin
    there = reframed(sim._results, system.reference_frames, system.origin, Other)
    back = reframed(there, frames, origin, system)
    assert np.abs(there[:, 1:22] - sim._results[:, 1:22]).max() > 0.1
    assert np.abs(back - sim._results).max() <= 1e-12 * np.abs(sim._results).max()
    poses, v = there[:, 1:22].reshape(-1, 3, 7), there[:, 22 + len(system.counted_angles) :][:, :18].reshape(-1, 3, 6)
    for k, state in enumerate(sim.states):  # the new reference points, by the poses of the bodies
        for b, name in enumerate(system.names):
            assert np.abs(poses[k, b, :3] + origin - state[name].point(frames[b, :3])).max() <= 1e-12
            assert np.abs(v[k, b, :3] - state[name].velocity_of(frames[b, :3])).max() <= 1e-11


# -- files that are damaged or hostile ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good():
    motion = machine().move([0.0, 0.1])
    return {suffix: to_bytes(suffix, motion) for suffix in container.SUFFIXES}


def refused(path, data, match):
    path.write_bytes(data)
    with pytest.raises(cd.FileError, match=match) as error:
        cd.load_result(path)
    assert str(path) in str(error.value)


def changed(data, change):
    """A .json with a changed document."""
    document = json.loads(data)
    change(document)
    return json.dumps(document).encode()


def repacked(data, change=lambda name, content: content, compression=zipfile.ZIP_STORED, extra=()):
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", compression) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
        for name, content in extra:
            new.writestr(name, content)
    return made.getvalue()


def array_bytes(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def test_truncated_files_are_refused(tmp_path, good):
    for suffix, data in good.items():
        for part in (0, 1, 10, len(data) // 3, len(data) // 2, len(data) - 30):
            refused(tmp_path / f"run{suffix}", data[:part], "damaged or no saved result")


def test_every_flipped_byte_is_refused_or_harmless(tmp_path, good):
    """A byte of an .npz that is flipped is found by its check sum, or is none of the data."""
    data = good[".npz"]
    whole = cd.load_result(_written(tmp_path, data))
    for at in range(0, len(data), 97):
        path = _written(tmp_path, data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            assert cd.load_result(path) == whole
        except cd.ModelError as error:
            assert isinstance(error, cd.FileError)


def _written(folder, data):
    path = folder / "run.npz"
    path.write_bytes(data)
    return path


def test_other_files_are_refused(tmp_path, good):
    path = tmp_path / "run.npz"
    refused(path, b"hello", "damaged or no saved result")
    refused(tmp_path / "run.json", b"[1, 2]", "must be a JSON object")
    refused(tmp_path / "run.json", b"{}", "it has no version")
    refused(tmp_path / "run.json", b'{"cardan": 2, "name": "x"}', "it has no version")
    refused(tmp_path / "run.json", b"\xff\xfe", "damaged or no saved result")
    refused(tmp_path / "run.json", b'{"cardan_result": NaN}', "NaN is not a number of JSON")
    refused(tmp_path / "run.json", b"[" * 100_000, "damaged or no saved result")
    np.savez(path, a=np.zeros(3))
    refused(path, path.read_bytes(), "no member 'document'")
    with pytest.raises(cd.ModelError, match=r"must end in \.npz, \.json"):
        cd.load_result(tmp_path / "run.txt")
    with pytest.raises(cd.ModelError, match="cannot be read"):
        cd.load_result(tmp_path / "none.npz")
    with pytest.raises(cd.ModelError, match="give its path"):
        cd.load_result(3)


def test_versions_and_kinds_that_are_not_known_are_refused(tmp_path, good):
    path = tmp_path / "run.json"
    for version in (2, 0, -1, 10**30):
        refused(path, changed(good[".json"], lambda d, v=version: d.update(cardan_result=v)), "reads versions 1 to 1")
    for version in ("1", True, None, 1.0):
        refused(path, changed(good[".json"], lambda d, v=version: d.update(cardan_result=v)), "it has no version")
    refused(path, changed(good[".json"], lambda d: d.update(kind="Motions")), "did you mean 'Motion'")
    refused(path, changed(good[".json"], lambda d: d.update(kind="State")), "it has Motion in place of State")


def test_nothing_is_unpickled(tmp_path, good):
    """An array of objects would be unpickled by numpy.load(…, allow_pickle=True)."""

    class Evil:
        def __reduce__(self):
            return pytest.fail, ("a file was unpickled",)

    evil = array_bytes(np.array([Evil()], dtype=object), allow_pickle=True)
    path = tmp_path / "run.npz"
    refused(path, repacked(good[".npz"], lambda name, content: evil if name == "array_0.npy" else content), "dtype")
    refused(path, evil, "damaged or no saved result")


def test_arrays_that_claim_to_be_large_take_no_memory(tmp_path, good):
    path = tmp_path / "run.npz"
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    claims = head.getvalue() + bytes(80)
    refused(path, repacked(good[".npz"], lambda name, c: claims if name == "array_0.npy" else c), "not as many numbers")
    bomb = repacked(good[".npz"], compression=zipfile.ZIP_DEFLATED, extra=[("big.npy", array_bytes(np.zeros(10**7)))])
    assert len(bomb) < 200_000
    refused(path, bomb, "compressed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "MOST_ARRAYS", 3)
        refused(path, good[".npz"], "at most 3 are read")
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = repacked(good[".npz"], extra=[("array_0.npy", array_bytes(np.zeros(3)))])
    refused(path, twice, "different names")
    refused(path, repacked(good[".npz"], extra=[("../evil.txt", b"x")]), "must be arrays")
    for suffix, data in good.items():
        limits = container.MOST_BYTES
        small = {**limits, suffix: 100}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(container, "MOST_BYTES", small)
            file = tmp_path / f"run{suffix}"
            file.write_bytes(data)
            with pytest.raises(cd.ModelError, match="larger than 100 bytes"):
                cd.load_result(file)


@pytest.mark.parametrize("suffix", container.SUFFIXES)
def test_devices_and_pipes_are_refused(tmp_path, suffix):
    """A pipe would wait for its other end, and a device has no end."""
    path = tmp_path / f"run{suffix}"
    os.mkfifo(path)
    with pytest.raises(cd.ModelError, match="not a regular file"):
        cd.load_result(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(cd.ModelError, match="not a regular file"):
        cd.load_result(path)


def test_overlapping_members_of_a_zip_are_refused(tmp_path, good):
    """Members of the central directory that all point to one place claim more bytes than the file has."""
    made = bytearray(repacked(b"PK\x05\x06" + bytes(18), extra=[("a.npy", array_bytes(np.zeros(10_000)))]))
    at = made.rfind(b"PK\x01\x02")
    entry, end = bytes(made[at : made.rfind(b"PK\x05\x06")]), bytearray(made[made.rfind(b"PK\x05\x06") :])
    entries = b"".join(entry.replace(b"a.npy", b"%c.npy" % (97 + k)) for k in range(20))
    end[8:12] = struct.pack("<HH", 20, 20)
    end[12:16] = struct.pack("<I", len(entries))
    refused(tmp_path / "run.npz", bytes(made[:at]) + entries + bytes(end), "larger than the file|damaged")


def _data(document):
    return document["data"]


def drop(*path):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def put(value, *path):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


HOSTILE = [
    *[drop("data", key) for key in ("times", "coordinates", "status", "reason", "system", "gravity", "undriven")],
    drop("data"),
    drop("arrays"),
    drop("arrays", "array_0"),
    drop("model"),
    put("x", "model"),
    put("{}", "model"),
    put(3, "data"),
    put([], "data"),
    put({"kind": "os.system", "fields": {}}, "data"),
    put({"kind": "Motion"}, "data"),
    put("done", "data", "status"),
    put({"enum": "Status", "value": "done"}, "data", "status"),
    put({"enum": "MotionStatus", "value": "?"}, "data", "status"),
    put("many", "data", "steps"),
    put(3, "data", "reason"),
    put({"map": [["r", "x"]]}, "data", "system", "values"),
    put({"map": []}, "data", "system", "values"),
    put(["crank"], "data", "system", "names"),
    put(["A", "evil"], "data", "system", "constraints"),
    put({"tuple": [1.0, 2.0]}, "data", "gravity"),
    put({"tuple": [1.0, 2.0, "x"]}, "data", "gravity"),
    put({"array": "array_1"}, "data", "coordinates"),
    put({"array": "none"}, "data", "times"),
    put({"number": "exit()"}, "data", "gravity"),
    put([2, 3, 8], "arrays", "array_0", "shape"),
    put([-1], "arrays", "array_0", "shape"),
    put([2, 3, 10**12], "arrays", "array_0", "shape"),
    put("O", "arrays", "array_0", "dtype"),
    put(["x"] * 42, "arrays", "array_0", "values"),
    put([None] * 42, "arrays", "array_0", "values"),
    put({"kind": "State", "names": {"tuple": ["a"]}}, "data", "state"),
]  # fmt: skip


@pytest.mark.parametrize("change", HOSTILE, ids=range(len(HOSTILE)))
def test_documents_that_are_damaged_are_refused(tmp_path, good, change):
    refused(tmp_path / "run.json", changed(good[".json"], change), ".")


def test_values_that_are_nested_deeply_are_refused(tmp_path, good):
    deep = 1.0
    for _ in range(200):
        deep = [deep]
    refused(tmp_path / "run.json", changed(good[".json"], put(deep, "data", "_notes")), "nested too deeply")


def test_arrays_of_other_results_never_reach_a_kernel(tmp_path):
    """Kernels trust shapes: an array of another shape must be refused, not read beyond its end."""
    m = machine()
    sim = m.simulate(0.1, step=1e-2)
    data = to_bytes(".json", sim)
    rows = len(sim.times)
    for width in (1, 5, sim._results.shape[1] - 1, sim._results.shape[1] + 1):
        other = {"dtype": "<f8", "shape": [rows, width], "values": [0.0] * (rows * width)}
        refused(tmp_path / "run.json", changed(data, put(other, "arrays", "array_0")), "shape")
    result = to_bytes(".json", m.assemble())
    found = json.loads(result)
    name = found["data"]["fields"]["_residuals"]["array"]
    short = {"dtype": "<f8", "shape": [2], "values": [0.0, 0.0]}
    refused(tmp_path / "run.json", changed(result, put(short, "arrays", name)), "shape")
    masses = json.loads(data)["data"]["equations"]["masses"]["array"]
    heavy = {"dtype": "<f8", "shape": [3, 6], "values": [1.0] * 18}
    refused(tmp_path / "run.json", changed(data, put(heavy, "arrays", masses)), "masses")


def test_wrong_endings_and_arguments_are_refused(tmp_path):
    result = machine().assemble()
    with pytest.raises(cd.ModelError, match=r"must end in \.npz, \.json"):
        result.save(tmp_path / "run.csv")
    with pytest.raises(cd.ModelError, match="mechanism is 3"):
        result.save(tmp_path / "run.npz", mechanism=3)
    with pytest.raises(cd.ArgumentError, match="'mechanism'"):
        cd.load_result(tmp_path / "run.npz", mecanism=3)


@pytest.mark.parametrize("path", [None, 3, b"x.npz", ["x.npz"]])
def test_what_is_no_path_is_refused(path):
    m = machine()
    words = re.escape(f"the file is {path!r}; give its path")
    calls = [m.assemble().save, m.state.save, m.move([0.0, 0.1]).save, m.simulate(0.01, step=1e-2).save]
    for call in (*calls, m.save, cd.load, cd.load_result, mjcf.load, urdf.load, cd.cad.load_step):
        with pytest.raises(cd.ModelError, match=words):
            call(path)


def test_a_loaded_simulation_is_not_resumed(tmp_path):
    def interrupt(part):
        raise KeyboardInterrupt

    sim = machine().simulate(0.5, step=1e-4, progress=interrupt)
    sim.save(tmp_path / "run.npz")
    loaded = cd.load_result(tmp_path / "run.npz")
    assert loaded == sim and loaded.status == "interrupted"
    with pytest.raises(cd.ModelError, match="loaded cannot be resumed; simulate from its last state"):
        loaded.resume()
