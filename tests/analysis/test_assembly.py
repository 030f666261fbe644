"""Laws of assembly: invariances, no false success, and the report of failures."""

from __future__ import annotations

import time
from importlib import import_module

import numpy as np
import pytest

import cardan as cd
from cardan import examples, lazy
from cardan.coordinates import formulations
from cardan.lazy import TieredModule
from cardan.solvers import methods
from mechanisms import (
    BENCHMARKS,
    Model,
    axes,
    change_point,
    matrix,
    miss,
    planar_4r,
    product,
    quaternion,
    random_rotation,
    rotation,
    rsur,
    stewart,
    stretched,
    unit,
)

METHODS = ["auto", *methods.REGISTRY]
FORMULATIONS = list(formulations.REGISTRY)
MODELS = list(BENCHMARKS)
STARTS = range(20)
SAME_POSE = 1e-9  # positions relative to the size of the mechanism, entries of rotation matrices

UNMET = (cd.Status.CONFLICT, cd.Status.STALLED)


def pose_difference(built, state, expected):
    """Largest difference of the poses in a state from those expected: {name: (position, R)}."""
    return max(
        max(
            np.abs(state[name].position - position).max() / built.size, np.abs(matrix(state[name].quaternion) - R).max()
        )
        for name, (position, R) in expected.items()
    )


def poses(state):
    return {name: (pose.position, matrix(pose.quaternion)) for name, pose in state.items()}


def verdict(result):
    return result.status, result.restarts


def compared_start(built, seed):
    """A uniform start; for Bricard's loop a closer one.

    From a distant start, a change of one ulp grows beyond 1e-9 during the iterations.
    """
    return built.near_start(seed, 0.5) if built.mechanism.name == "Bricard" else built.uniform_start(seed)


# --- invariances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit_of_length", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("model", MODELS)
def test_the_unit_of_length_changes_neither_iterations_nor_restarts_nor_poses(model, unit_of_length):
    one, other = BENCHMARKS[model]().build(), BENCHMARKS[model]().build(unit=unit_of_length)
    for seed in STARTS:
        a = one.mechanism.assemble(compared_start(one, seed))
        b = other.mechanism.assemble(compared_start(other, seed))
        assert (a.status, a.iterations, a.restarts) == (b.status, b.iterations, b.restarts)
        if a.restarts == 0:
            expected = {name: (position * unit_of_length, R) for name, (position, R) in poses(a.state).items()}
            assert pose_difference(other, b.state, expected) <= SAME_POSE
        assert abs(a.residual - b.residual) <= 1e-12


@pytest.mark.parametrize("model", [name for name in MODELS if name != "Bricard"])
def test_a_start_moved_by_rounding_ends_at_the_same_pose(model):
    """Damping that became zero while residuals were still large let 1e-15 grow to 1e-9."""
    built = BENCHMARKS[model]().build()
    rng = np.random.default_rng(1)
    for seed in STARTS:
        start = built.mechanism.state.moved(compared_start(built, seed))
        a = built.mechanism.assemble(start)
        if a.restarts > 0:
            continue
        for _ in range(3):
            other = {n: (p.position + 1e-15 * rng.normal(size=3), p.quaternion) for n, p in start.items()}
            b = built.mechanism.assemble(other)
            assert b.iterations == a.iterations
            assert pose_difference(built, b.state, poses(a.state)) <= 2e-11


def test_a_chain_with_many_freedoms_is_not_sensitive_to_rounding_of_its_start():
    m = examples.REGISTRY["bent_chain"].build()
    rng = np.random.default_rng(0)
    for seed in range(40):
        start = m.state.moved(examples.random_start(m, seed))
        a = m.assemble(start)
        b = m.assemble({n: (p.position + 1e-15 * rng.normal(size=3), p.quaternion) for n, p in start.items()})
        assert (a.iterations, a.restarts) == (b.iterations, 0)
        assert np.abs(a.state.positions - b.state.positions).max() <= 2e-9


def test_compiled_and_interpreted_kernels_give_the_same_result(monkeypatch):
    """Interpreted kernels round as their machine code does."""
    built = BENCHMARKS["RSUR"]().build()
    found = []
    for patience in (10**9, 0):
        monkeypatch.setattr(TieredModule, "patience", patience)
        for module in ("cardan.coordinates.formulations", "cardan.coordinates.verdict", "cardan.system.system"):
            for name, value in vars(import_module(module)).items():
                if isinstance(value, TieredModule):
                    monkeypatch.setattr(import_module(module), name, Interpreted(value, patience > 0))
        m = BENCHMARKS["RSUR"]().build().mechanism
        found.append([m.assemble(compared_start(built, seed)) for seed in STARTS])
    for a, b in zip(*found, strict=True):
        assert a == b
        assert a.state == b.state


class Interpreted:
    """A module of kernels whose functions are all interpreted, or all compiled."""

    def __init__(self, module, plain):
        self._module, self._plain = module.__dict__["_name"], plain

    def __getattr__(self, name):
        return getattr((lazy._uncompiled if self._plain else import_module)(self._module), name)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_bodies_and_constraints_changes_neither_verdict_nor_pose(model, seed):
    drawn = BENCHMARKS[model]()
    rng = np.random.default_rng(seed)
    bodies, bonds = rng.permutation(list(drawn.bodies)), rng.permutation([bond.name for bond in drawn.bonds])
    one, other = drawn.build(), drawn.build(bodies=bodies.tolist(), bonds=bonds.tolist())
    for start in STARTS:
        a = one.mechanism.assemble(compared_start(one, start))
        b = other.mechanism.assemble(compared_start(other, start))
        assert verdict(a) == verdict(b)
        if a.restarts == 0:
            assert pose_difference(other, b.state, poses(a.state)) <= SAME_POSE


@pytest.mark.parametrize("far", [0.0, 1.0, 1000.0])
@pytest.mark.parametrize("model", MODELS)
def test_a_rigid_motion_of_everything_moves_the_answer_and_leaves_the_verdict(model, far):
    drawn = BENCHMARKS[model]()
    R, t = random_rotation(np.random.default_rng(7)), far * drawn.size * unit([1, 2, -2])
    one, other = drawn.build(), drawn.build(motion=(R, t))
    for seed in STARTS:
        a = one.mechanism.assemble(compared_start(one, seed))
        b = other.mechanism.assemble(compared_start(other, seed))
        assert verdict(a) == verdict(b)
        if a.restarts == 0:
            expected = {name: (R @ position + t, R @ A) for name, (position, A) in poses(a.state).items()}
            assert pose_difference(other, b.state, expected) <= SAME_POSE


@pytest.mark.parametrize("model", MODELS)
def test_the_origins_of_the_bodies_do_not_change_the_iterations(model):
    """Origins 100 sizes away from the features, with the same start of the parts."""
    drawn = BENCHMARKS[model]()
    rng = np.random.default_rng(8)
    origins = {name: 100 * drawn.size * unit(rng.normal(size=3)) for name in drawn.bodies}
    one, other = drawn.build(), drawn.build(origins=origins)
    for seed in STARTS:
        start = compared_start(one, seed)
        shifted = {name: (r + matrix(p) @ origins[name], p) for name, (r, p) in start.items()}
        a, b = one.mechanism.assemble(start), other.mechanism.assemble(shifted)
        assert (a.status, a.iterations, a.restarts) == (b.status, b.iterations, b.restarts)
        assert other.judge(b.state) <= 1e-10


@pytest.mark.parametrize("model", MODELS)
def test_the_signs_of_quaternions_do_not_matter(model):
    built = BENCHMARKS[model]().build()
    rng = np.random.default_rng(9)
    for seed in STARTS:
        start = compared_start(built, seed)
        other = {name: (r, p * rng.choice([-1.0, 1.0])) for name, (r, p) in start.items()}
        a, b = built.mechanism.assemble(start), built.mechanism.assemble(other)
        assert (a.status, a.iterations, a.restarts) == (b.status, b.iterations, b.restarts)
        assert pose_difference(built, b.state, poses(a.state)) <= SAME_POSE


def point_parts():
    """Parts that are points: the model has no length except between points of the ground."""
    model = Model("points", 2.0)
    model.body("one", rotation([1, 2, 3], 0.4), (0.5, 0.7, -0.2))
    model.body("two", rotation([3, 2, 1], 0.9), (0.5, 0.7, -0.2))
    model.bond("spherical", "hold", "ground", "one", (0.5, 0.7, -0.2))
    model.bond("spherical", "meet", "one", "two", (0.5, 0.7, -0.2))
    return model


EXTENTS = {**BENCHMARKS, "stretched": stretched, "points": point_parts}


@pytest.mark.parametrize("model", EXTENTS)
def test_the_extent_of_a_mechanism_scales_with_its_unit(model):
    lengths = [EXTENTS[model]().build(unit=u).mechanism.system.length / u for u in (1.0, 1e-6, 1e6)]
    assert np.ptp(lengths) <= 1e-12 * lengths[0]


@pytest.mark.parametrize("model", EXTENTS)
def test_the_extent_of_a_mechanism_does_not_depend_on_place_order_or_origins(model):
    drawn = EXTENTS[model]()
    rng = np.random.default_rng(10)
    first = drawn.build().mechanism.system.length
    names, bonds = list(drawn.bodies), [bond.name for bond in drawn.bonds]
    variants = [
        drawn.build(motion=(random_rotation(rng), rng.normal(size=3))),
        drawn.build(bodies=names[::-1], bonds=bonds[::-1]),
        drawn.build(origins={name: rng.normal(size=3) * drawn.size for name in names}),
    ]
    for variant in variants:
        assert abs(variant.mechanism.system.length - first) <= 1e-12 * first


def test_parts_that_are_points_take_the_same_iterations_in_every_unit():
    counts = []
    for u in (1.0, 1e-6, 1e6):
        built = point_parts().build(unit=u)
        result = built.mechanism.assemble(built.uniform_start(3))
        assert result.ok and built.judge(result.state) <= 1e-10
        counts.append((result.iterations, result.restarts))
    assert counts[0] == counts[1] == counts[2]


def seeds_that_need_restarts(built, most=200):
    return [s for s in range(most) if built.mechanism.assemble(built.uniform_start(s)).restarts > 0]


def test_restarts_are_the_same_poses_in_every_order_unit_and_place():
    """The plate has isolated poses, so that the same one is found after a restart."""
    drawn = stewart()
    one = drawn.build()
    seeds = seeds_that_need_restarts(one, 60)
    assert len(seeds) >= 5
    R, t = random_rotation(np.random.default_rng(11)), np.array([7.0, -3.0, 5.0])
    bonds = [bond.name for bond in drawn.bonds]
    variants = [(drawn.build(unit=1e3), 1e3, np.eye(3), np.zeros(3)), (drawn.build(motion=(R, t)), 1.0, R, t)]
    variants.append((drawn.build(bonds=bonds[::-1]), 1.0, np.eye(3), np.zeros(3)))
    for seed in seeds:
        a = one.mechanism.assemble(one.uniform_start(seed))
        for other, scale, R, t in variants:
            b = other.mechanism.assemble(other.uniform_start(seed))
            assert verdict(a) == verdict(b)
            expected = {name: (R @ r * scale + t, R @ A) for name, (r, A) in poses(a.state).items()}
            assert pose_difference(other, b.state, expected) <= SAME_POSE


def test_restarts_stay_near_the_mechanism_if_the_ground_has_only_a_direction():
    """A Stewart platform whose base is a body, kept parallel to the ground and otherwise free, far from the origin."""
    model = Model("floating", 2.0)
    fixed_base = stewart()
    model.body("base", np.eye(3), (0, 0, 0))
    model.body("plate", *fixed_base.bodies["plate"])
    for bond in fixed_base.bonds:
        model.bond(
            "distance", bond.name, "base", "plate", bond.point_a, point_b=bond.point_b, length=bond.options["length"]
        )
    model.bond("parallel", "level", "ground", "base", (0, 0, 0))
    one = model.build()
    far = model.build(motion=(np.eye(3), np.array([1000.0, 0.0, 0.0])))
    seeds = seeds_that_need_restarts(one, 60)
    assert len(seeds) >= 3
    for seed in seeds:
        a, b = one.mechanism.assemble(one.uniform_start(seed)), far.mechanism.assemble(far.uniform_start(seed))
        assert verdict(a) == verdict(b)
        assert np.abs(b.state["plate"].position - (1000, 0, 0)).max() <= 20.0


def test_assembly_is_the_same_every_time_for_the_same_seed():
    seeds = seeds_that_need_restarts(stewart().build(), 40)
    assert seeds
    for start in seeds:
        results = []
        for _ in range(2):
            built = stewart().build()
            results.append(built.mechanism.assemble(built.uniform_start(start), seed=5))
        assert results[0] == results[1]


def test_another_seed_restarts_from_other_poses():
    built = stewart().build()
    start = built.uniform_start(seeds_that_need_restarts(built)[0])
    results = [built.mechanism.assemble(start, seed=seed) for seed in range(12)]
    assert all(r.ok and built.judge(r.state) <= 1e-10 for r in results)
    assert len({r.iterations for r in results}) > 1


# --- formulations and methods -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_formulations_agree_in_their_verdict(model):
    built = BENCHMARKS[model]().build()
    for seed in STARTS:
        for formulation in FORMULATIONS:
            result = built.mechanism.assemble(built.uniform_start(seed), formulation=formulation)
            assert result.ok and result.formulation == formulation
            assert built.judge(result.state) <= 1e-10


def test_formulations_agree_in_the_pose_where_it_is_unique():
    built = stewart().build()
    for seed in STARTS:
        results = [built.mechanism.assemble(built.near_start(seed), formulation=f) for f in FORMULATIONS]
        assert all(r.ok and r.restarts == 0 for r in results)
        for result in results:
            position, turn = built.drawn["plate"]
            assert pose_difference(built, result.state, {"plate": (position, matrix(turn))}) <= 1e-10


# Known failures of the formulations for comparison: a virtual rotation is no derivative off the unit sphere, and near
# the pole θ = 0 the spring step with Euler angles converges slowly.
KNOWN_TO_FAIL = {
    ("Bricard", "newton", "virtual_rotation"),
    ("Bricard", "newton_lu", "virtual_rotation"),
    ("Stewart", "gradient", "euler_angles"),
}

# The same cause: from one start in fifty the last digit of the axes decides whether it converges.
SELDOM_FAILS = ("Bricard", "hybrid", "virtual_rotation")


def test_a_hybrid_with_virtual_rotations_seldom_fails_from_an_easy_start():
    model, method, formulation = SELDOM_FAILS
    built = BENCHMARKS[model]().build()
    starts = [built.near_start(seed, 0.05) for seed in range(60)]
    results = [built.mechanism.assemble(start, method=method, formulation=formulation) for start in starts]
    assert sum(result.ok for result in results) >= 55
    assert all(built.judge(result.state) <= 1e-10 for result in results if result.ok)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_every_method_assembles_from_an_easy_start(model, method, formulation):
    if (model, method, formulation) in KNOWN_TO_FAIL:
        built = BENCHMARKS[model]().build()
        results = [
            built.mechanism.assemble(built.near_start(s, 0.05), method=method, formulation=formulation, tolerance=1e-8)
            for s in range(3)
        ]
        assert not all(result.ok for result in results)  # else remove it from the list
        return
    built = BENCHMARKS[model]().build()
    for seed in range(3):
        result = built.mechanism.assemble(
            built.near_start(seed, 0.05),
            method=method,
            formulation=formulation,
            tolerance=1e-8 if method == "gradient" else 1e-12,  # the spring step converges slowly
        )
        if not result.ok and (model, method, formulation) == SELDOM_FAILS:
            continue
        assert result.ok, result.text()
        assert (result.method, result.restarts) == (method, 0)
        assert built.judge(result.state) <= (1e-7 if method == "gradient" else 1e-10)


@pytest.mark.parametrize("starts", [40, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_ok_is_never_reported_for_an_unmet_residual(model, method, starts):
    """Uniform starts, alternating between two formulations; the plain methods fail from most of them."""
    built = BENCHMARKS[model]().build()
    said_ok = 0
    for seed in range(starts):
        result = built.mechanism.assemble(
            built.uniform_start(seed),
            method=method,
            formulation=FORMULATIONS[seed % 2],
            max_iterations=500 if method == "gradient" else None,
            restarts=1 if method == "auto" else None,
        )
        said_ok += result.ok
        assert result.ok == (result.residual <= result.tolerance) == (result.status is cd.Status.ASSEMBLED)
        assert not result.ok or built.judge(result.state) <= 1e-10
        assert result.ok or built.judge(result.state) > 1e-13
    if method not in ("gradient",):  # a gradient needs thousands of iterations for twelve digits
        assert said_ok >= 0.1 * starts


@pytest.mark.parametrize("model", MODELS)
def test_auto_assembles_every_uniform_start(model):
    built = BENCHMARKS[model]().build()
    for seed in range(300):
        result = built.mechanism.assemble(built.uniform_start(1000 + seed))
        assert result.ok, result.text()
        assert built.judge(result.state) <= 1e-10


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
def test_the_tolerance_is_what_the_residual_is_judged_by(tolerance):
    built = rsur().build()
    length = built.mechanism.system.length
    for seed in STARTS:
        result = built.mechanism.assemble(built.uniform_start(seed), tolerance=tolerance)
        assert result.ok and result.residual <= result.tolerance == tolerance
        assert built.judge(result.state) <= tolerance * 3 * length / built.size


def test_the_residuals_by_name_are_those_of_the_judge():
    """At poses that are not assembled: lengths in metres, angles between axes in radians."""
    for model in MODELS:
        built = BENCHMARKS[model]().build()
        names = list(built.mechanism.joints)
        for seed in STARTS:
            result = built.mechanism.assemble(built.near_start(seed, 0.3), method="newton", max_iterations=1)
            told = {(name, unit_): residual for name, residual, unit_ in result.residuals}
            assert set(names) == {name for name, _ in told}
            for name, (kind, a, b, options) in zip(names, built.locals, strict=True):
                length, angle = miss(kind, a, b, result.state, options)
                assert abs(told.get((name, "m"), 0.0) - length) <= 1e-13
                assert abs(told.get((name, "rad"), 0.0) - angle) <= 1e-13


# --- inconsistent constraints -----------------------------------------------------------------------------------------


def two_rods():
    """A point on two rods of 1 and 2 m whose ends are 5 m apart; and a consistent hinge."""
    m = cd.Mechanism("two rods")
    point, flap = m.body("point", position=(1, 1, 0)), m.body("flap", position=(0, 1, 8))
    m.distance("short", m.ground.point((0, 0, 0)), point.point(), 1.0)
    m.distance("long", m.ground.point((5, 0, 0)), point.point(), 2.0)
    m.revolute("hinge", m.ground.frame((0, 0, 7)), flap.frame())
    return m


def twice_fixed():
    """A body fixed at two places 1 m apart."""
    m = cd.Mechanism("twice fixed")
    body = m.body("block", position=(1, 1, 0), orientation=(1, 0.3, 0.2, 0.1))
    m.fixed("here", m.ground.frame((0, 0, 0)), body.frame())
    m.fixed("there", m.ground.frame((1, 0, 0)), body.frame())
    return m


def twice_turned():
    """A body fixed at one place in two orientations a quarter turn apart."""
    m = cd.Mechanism("twice turned")
    body = m.body("block", position=(1, 1, 0), orientation=(1, 0.3, 0.2, 0.1))
    m.fixed("so", m.ground.frame(x=(1, 0, 0)), body.frame(x=(1, 0, 0)))
    m.fixed("otherwise", m.ground.frame(x=(0, 1, 0)), body.frame(x=(1, 0, 0)))
    return m


def far_apart(distance=4.0):
    """A link of 3 m between two points that a driven crank and the ground hold 4 m apart: no simple proof exists."""
    m = cd.Mechanism("far apart")
    crank, link = m.body("crank", orientation=(1, 0.3, 0.2, 0.1)), m.body("link", position=(1, 0, 0))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((2, 0, 0)), link.frame())
    m.revolute("C", m.ground.frame((2, distance, 0)), link.frame((3, 0, 0)))
    m.drive("motor", m["A"], 0.0)
    return m


def two_angles():
    m = cd.Mechanism("two angles")
    body = m.body("block", orientation=(1, 0.3, 0.2, 0.1))
    m.angle("narrow", m.ground.frame(), body.frame(), 0.5)
    m.angle("wide", m.ground.frame(), body.frame(), 0.9)
    return m


def short_four_bar():
    """Three links of 1 m between hinges 5 m apart: each of the four hinges has a residual of 0.5 m."""
    m = cd.Mechanism("short four-bar")
    crank, coupler, rocker = (m.body(name, position=p) for name, p in LINKS)
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((1, 0, 0)), coupler.frame())
    m.revolute("C", coupler.frame((1, 0, 0)), rocker.frame((1, 0, 0)))
    m.revolute("D", m.ground.frame((5, 0, 0)), rocker.frame())
    return m


LINKS = (("crank", (0, 0, 0)), ("coupler", (1, 0, 0)), ("rocker", (5, 0.3, 0)))

# A mechanism, and the residuals of the least sum of squares: by name and unit.
CONFLICTS = {
    "triangle inequality": (two_rods, {("short", "m"): 1.0, ("long", "m"): 1.0}),
    "two places": (twice_fixed, {("here", "m"): 0.5, ("there", "m"): 0.5}),
    "two orientations": (twice_turned, {("so", "rad"): np.pi / 4, ("otherwise", "rad"): np.pi / 4}),
    "two angles": (two_angles, {("narrow", "rad"): 0.2, ("wide", "rad"): 0.2}),
    "short links": (short_four_bar, {(name, "m"): 0.5 for name in "ABCD"}),
}


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("case", CONFLICTS)
def test_a_conflict_is_reported_with_names_and_sizes(case, formulation):
    make, expected = CONFLICTS[case]
    result = make().assemble(formulation=formulation)
    assert not result.ok
    assert result.status is cd.Status.CONFLICT
    if (case, formulation) == ("short links", "virtual_rotation"):  # no derivative: it does not end at minima
        return
    worst = {(name, unit_): residual for name, residual, unit_ in result.residuals}
    first = [(v.name, v.unit) for v in result.worst[: len(expected)]]
    assert set(first) == set(expected)
    # with Euler parameters the normalisation is part of the sum of squares
    share = 1e-4 if formulation == "manifold" else 1e-2
    for key, value in expected.items():
        assert abs(worst.pop(key) - value) <= share * value
    assert max(worst.values(), default=0.0) <= 1e-4
    assert all(name in result.text() for name, _ in expected)
    assert "contradict" in result.text()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CONFLICTS)
def test_no_method_reports_inconsistent_constraints_as_assembled(case, method):
    result = CONFLICTS[case][0]().assemble(method=method, max_iterations=300)
    assert not result.ok
    assert result.status is not cd.Status.ASSEMBLED
    assert result.residual > 1e-3
    assert result.worst[0].name in {name for name, _ in CONFLICTS[case][1]}


def test_axes_that_must_be_parallel_and_perpendicular_are_a_conflict():
    """The sum of squares, 1 + (1 − cos θ)², has a flat minimum at θ = 0."""
    m = cd.Mechanism()
    body = m.body("block", orientation=(1, 0.3, 0.2, 0.1))
    m.parallel("along", m.ground.frame(), body.frame())
    m.perpendicular("across", m.ground.frame(), body.frame())
    result = m.assemble()
    assert not result.ok
    assert result.worst[0].name == "across" and result.worst[0].unit == "rad"
    assert abs(np.sin(result.worst[0].residual) - 1.0) <= 0.01  # a right angle, with the accuracy of a flat minimum
    assert result.status in UNMET


def test_a_small_inconsistency_is_a_conflict():
    m = short_four_bar()
    m.remove("D")
    m.revolute("D", m.ground.frame((3.0001, 0, 0)), m["rocker"].frame())
    result = m.assemble()
    assert result.status is cd.Status.CONFLICT
    assert sum(v.residual for v in result.worst if v.unit == "m") == pytest.approx(1e-4, rel=1e-3)


def test_a_mechanism_that_can_just_be_closed_is_assembled():
    m = short_four_bar()
    m.remove("D")
    m.revolute("D", m.ground.frame((3.0, 0, 0)), m["rocker"].frame())
    result = m.assemble()
    assert result.ok
    assert np.abs(result.state["coupler"].position - (1, 0, 0)).max() <= 1e-5


def test_unconnected_bodies_assemble_and_are_named():
    m = two_rods()
    m.remove("short")
    one, two = m.body("adrift", position=(9, 0, 0)), m.body("in tow", position=(3, 4, 0))
    m.spherical("tow", one.point((1, 0, 0)), two.point((0, 0, 0)))
    m.body("alone", position=(1, 2, 3))
    result = m.assemble()
    assert result.ok
    assert result.unconnected == ("adrift", "in tow", "alone")
    assert "not connected to the ground: 'adrift', 'in tow', 'alone'" in result.text()
    assert np.linalg.norm(result.state["adrift"].point((1, 0, 0)) - result.state["in tow"].position) <= 1e-11
    assert result.state["alone"].position.tolist() == [1, 2, 3]
    assert m.diagnose(result.state).unconnected == result.unconnected
    two_rods_result = two_rods().assemble()
    assert two_rods_result.unconnected == ()


def test_a_free_body_stays_where_it_was_drawn():
    m = cd.Mechanism()
    m.body("free", position=(1, 2, 3), orientation=(0.5, 0.5, 0.5, 0.5))
    result = m.assemble()
    assert (result.ok, result.iterations, result.worst, result.unconnected) == (True, 0, [], ("free",))
    assert result.state == m.state


def test_under_constrained_parts_move_no_more_than_needed():
    """A point moves perpendicularly onto its plane; free coordinates do not change."""
    m = cd.Mechanism()
    body = m.body("disc", position=(3, 4, 5), orientation=(1, 0, 0, 0))
    m.point_in_plane("touch", body.point(), m.ground.frame())
    result = m.assemble()
    assert result.ok
    assert np.abs(result.state["disc"].position - (3, 4, 0)).max() <= 1e-9
    assert np.abs(result.state["disc"].quaternion - (1, 0, 0, 0)).max() <= 1e-9


# --- limits on work----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_iterations_are_limited_and_the_verdict_says_so(method):
    built = rsur().build()
    start = built.uniform_start(1)
    options = {"restarts": 0} if method == "auto" else {}
    needed = built.mechanism.assemble(start, method=method, **options).iterations
    assert needed > 4
    for cap in (1, 2, 3):
        result = built.mechanism.assemble(start, method=method, max_iterations=cap, **options)
        assert not result.ok
        assert result.iterations == cap
        assert result.status is cd.Status.ITERATION_LIMIT
        assert "max_iterations" in result.text()
    if method != "gradient":
        assert built.mechanism.assemble(start, method=method, max_iterations=needed, **options).ok


def test_the_iteration_limit_holds_for_every_attempt():
    built = rsur().build()
    result = built.mechanism.assemble(built.uniform_start(1), max_iterations=2, restarts=4)
    assert result.restarts <= 4
    assert result.iterations <= 2 * (result.restarts + 1)


@pytest.mark.parametrize("restarts", [0, 1, 7])
def test_no_more_restarts_are_made_than_allowed(restarts):
    for make in (twice_turned, far_apart):
        result = make().assemble(restarts=restarts)
        assert not result.ok
        assert result.restarts <= restarts


@pytest.mark.parametrize("restarts", [0, 1, 7, 60, 150])
def test_as_many_restarts_are_made_as_were_asked_for(restarts):
    """Attempts that agree end the restarts only if their number was not given; a conflict needs 32 that agree."""
    m = far_apart()
    result = m.assemble(restarts=restarts)
    assert result.restarts == restarts == m.assemble_many([None], restarts=restarts).restarts[0]
    assert result.status is (cd.Status.CONFLICT if restarts >= 46 else cd.Status.STALLED)
    assert m.assemble().status is cd.Status.CONFLICT
    assert far_apart(3.0).assemble().ok


@pytest.mark.parametrize("method", ["auto", "newton"])
def test_seconds_are_limited_and_the_verdict_says_so(method):
    """Inconsistent constraints, for which the methods use all the time allowed."""
    m = far_apart() if method == "auto" else two_rods()
    options = {"restarts": 10**8} if method == "auto" else {"max_iterations": 10**8}
    m.assemble(method=method)  # loads the kernels
    began = time.perf_counter()
    result = m.assemble(method=method, max_seconds=0.2, **options)
    elapsed = time.perf_counter() - began
    assert not result.ok
    assert result.status is cd.Status.TIME_LIMIT
    assert 0.2 <= elapsed <= 2.0
    assert 0.2 <= result.seconds <= elapsed
    assert "max_seconds" in result.text()


def test_a_solution_is_assembled_even_if_the_deadline_has_passed():
    built = rsur().build()
    result = built.mechanism.assemble(built.near_start(1), max_seconds=1e-9)
    assert result.ok


# --- singular poses, redundancy, saddles ------------------------------------------------------------------------------


def test_redundant_joints_are_no_error():
    """Every hinge of the planar four-bar twice: 40 equations, rank 17."""
    drawn = planar_4r()
    for bond in list(drawn.bonds):
        drawn.bond(bond.kind, f"{bond.name} again", bond.a, bond.b, bond.point_a)
    built = drawn.build()
    for seed in STARTS:
        result = built.mechanism.assemble(built.uniform_start(seed))
        assert result.ok, result.text()
        assert built.judge(result.state) <= 1e-10


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_change_point_is_unchanged_and_is_reached_from_nearby(formulation):
    built = change_point().build()
    result = built.mechanism.assemble(formulation=formulation)
    assert (result.ok, result.iterations) == (True, 0)
    for seed in STARTS:
        result = built.mechanism.assemble(built.near_start(seed, 0.2), formulation=formulation)
        assert result.ok, result.text()
        assert built.judge(result.state) <= 1e-10


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_solution_that_is_a_dead_point_is_found(formulation):
    """Residuals are quadratic in the angles there, so that residuals of 1e-12 leave errors of 1e-6 in the angles."""
    built = stretched().build()
    for seed in STARTS:
        result = built.mechanism.assemble(built.near_start(seed, 0.3), formulation=formulation)
        assert result.ok, result.text()
        assert built.judge(result.state) <= 1e-10
        expected = {name: (position, matrix(p)) for name, (position, p) in built.drawn.items()}
        assert pose_difference(built, result.state, expected) <= 1e-5


def test_a_flat_start_of_a_four_bar_with_excess_length_is_left():
    """All hinges are on one line, and the links are too long for it: no first-order motion leaves the line."""
    drawn = planar_4r()
    built = drawn.build()
    for lie in ((0.0, 0.0), (np.pi, 0.0), (0.0, np.pi), (np.pi, np.pi)):
        crank, rocker = lie
        start = {
            "crank": ((0, 0, 0), quaternion(rotation([0, 0, 1], crank))),
            "coupler": ((np.cos(crank), 0, 0), (1, 0, 0, 0)),
            "rocker": ((3, 0, 0), quaternion(rotation([0, 0, 1], rocker))),
        }
        result = built.mechanism.assemble(start)
        assert result.ok, result.text()
        assert built.judge(result.state) <= 1e-10


@pytest.mark.parametrize("model", ["RSUR", "planar 4R", "Bricard"])
def test_a_start_with_one_link_flipped_exactly_is_left(model):
    """Half a turn about an axis perpendicular to its hinge: the gradient of the hinge's residual is zero."""
    built = BENCHMARKS[model]().build()
    for name, (position, p) in built.drawn.items():
        kind, a, b, _ = next(entry for entry in built.locals if name in (entry[1].body, entry[2].body))
        local = b if b.body == name else a
        across = local.R[:, 0]
        pivot = position + matrix(p) @ local.origin
        turned = product(p, [0.0, *across])
        start = {name: (pivot - matrix(turned) @ local.origin, turned)}
        result = built.mechanism.assemble(start)
        assert result.ok, (kind, result.text())
        assert built.judge(result.state) <= 1e-10


# --- starts -----------------------------------------------------------------------------------------------------------


def test_a_start_may_be_a_state_a_mapping_of_poses_or_a_part_of_one():
    built = rsur().build()
    m = built.mechanism
    start = built.uniform_start(4)
    by_name = m.assemble(start)
    state = m.state.moved(start)
    assert m.assemble(state) == by_name
    assert m.assemble({m[name]: pose for name, pose in start.items()}) == by_name
    assert m.assemble({name: state[name] for name in start}) == by_name  # Pose objects
    assert m.assemble(dict(state)) == by_name
    part = {"crank": start["crank"]}
    assert m.assemble(part) == m.assemble(m.state.moved(part))
    assert m.assemble({}) == m.assemble() == m.assemble(m.state)
    unscaled = {name: (r, 3 * np.asarray(p)) for name, (r, p) in start.items()}
    again = m.assemble(unscaled)
    assert (again.ok, again.iterations) == (by_name.ok, by_name.iterations)
    assert pose_difference(built, again.state, poses(by_name.state)) <= SAME_POSE


def test_a_start_is_not_written_to():
    built = rsur().build()
    state = built.mechanism.state.moved(built.uniform_start(4))
    before = state.coordinates.copy()
    built.mechanism.assemble(state)
    assert np.array_equal(state.coordinates, before)
    arrays = {name: (np.array(r), np.array(p)) for name, (r, p) in built.uniform_start(4).items()}
    copies = {name: (r.copy(), p.copy()) for name, (r, p) in arrays.items()}
    built.mechanism.assemble(arrays)
    for name, (r, p) in arrays.items():
        assert np.array_equal(r, copies[name][0]) and np.array_equal(p, copies[name][1])


def test_a_state_of_the_same_bodies_in_another_order_is_a_start():
    drawn = rsur()
    one, other = drawn.build(), drawn.build(bodies=["rocker", "crank", "coupler"])
    result = one.mechanism.assemble(one.uniform_start(2))
    again = other.mechanism.assemble(result.state)
    assert (again.ok, again.iterations) == (True, 0)
    assert pose_difference(other, again.state, poses(result.state)) <= 1e-14


def test_a_state_of_another_mechanism_is_refused():
    with pytest.raises(cd.ModelError, match=r"state of other bodies: .*'plate'.*state of this mechanism"):
        rsur().build().mechanism.assemble(stewart().build().mechanism.state)


def test_an_assembled_state_is_assembled_again_at_once():
    for model in MODELS:
        built = BENCHMARKS[model]().build()
        for seed in range(5):
            state = built.mechanism.assemble(built.uniform_start(seed)).state
            again = built.mechanism.assemble(state)
            assert (again.ok, again.iterations, again.restarts) == (True, 0, 0)
            assert pose_difference(built, again.state, poses(state)) <= 1e-14


def test_the_branch_that_was_drawn_is_kept():
    """Both branches of the planar four-bar, slightly disturbed: the coupler's joint stays on its side."""
    drawn = planar_4r()
    built = drawn.build()
    B, D = np.array([np.cos(1.0), np.sin(1.0), 0.0]), np.array([3.0, 0.0, 0.0])
    C = built.drawn["coupler"][0] + matrix(built.drawn["coupler"][1]) @ (3.0, 0.0, 0.0)
    e = unit(D - B)
    mirrored = B + 2 * e * (e @ (C - B)) - (C - B)
    for corner in (C, mirrored):
        for seed in range(10):
            rng = np.random.default_rng(seed)
            start = {
                "coupler": (B, quaternion(axes([0, 0, 1], corner - B) @ rotation([0, 0, 1], rng.uniform(-0.1, 0.1)))),
                "rocker": (D, quaternion(axes([0, 0, 1], corner - D) @ rotation([0, 0, 1], rng.uniform(-0.1, 0.1)))),
            }
            result = built.mechanism.assemble(start)
            assert result.ok and result.restarts == 0
            reached = result.state["coupler"].point((3, 0, 0))
            assert np.linalg.norm(reached - corner) <= 0.5
