"""Clashes at all times of a motion, overlaps and distances in one state: against closed forms."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.motion import Motion, MotionStatus
from cardan.analysis.tracks import track

X, Z = (1, 0, 0), (0, 0, 1)
ENDS = 1e-9  # [s]


def ball(m, name, radius, position):
    """A ball that is fixed where it is."""
    body = m.body(name, position=position)
    body.fixed = True
    body.attach(cd.shapes.sphere(radius))


def swung(rng, posts, speed):
    """An arm with a ball at its end goes round for 10 s past posts, of which it touches every other one.

    Gives the motion and, of each touched post, its depth and the times at which the balls are a + b apart:
    R² + D² − 2RD cos(ωt − α) = (a + b)².
    """
    m = cd.Mechanism("arm")
    R, a = 0.1, 1e-3
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(), arm.frame())
    arm.attach(cd.shapes.sphere(a), arm.frame((R, 0, 0)))
    m.drive("motor", m["A"], lambda t: speed * t)
    expected = {}
    for k in range(posts):
        alpha, b = 2 * np.pi * (k + rng.uniform(0.2, 0.8)) / posts, 10 ** rng.uniform(-3, -2.5)
        off = 10 ** rng.uniform(-6, -4)
        inside = rng.random() < 0.5  # the post is within the circle
        D = R + (-1 if inside else 1) * (a + b - (off if k % 2 else -off))
        z = 0.0
        ball(m, f"post {k}", b, (D * np.cos(alpha), D * np.sin(alpha), z))
        if k % 2:
            half = np.arccos((R * R + D * D - (a + b) ** 2) / (2 * R * D))
            at = alpha + 2 * np.pi * np.arange(int(10 * speed / (2 * np.pi)) + 1)
            at = at[at + half < 10 * speed]
            expected[f"post {k}"] = (off, (at - half) / speed, at / speed, (at + half) / speed)
    return m.move(np.linspace(0, 10, 21)), expected


def check_planted(found, expected, arm="arm"):
    """0 missed, 0 false, ends to ENDS, or to what the error of the motion makes of a gap −d (1 − (t/h)²), whose rate at
    its ends is 2d/h; returns the number of touches and the shortest [s]."""
    assert found.status == "done" and not found.undecided
    assert {clash.b for clash in found} == set(expected)
    shortest = np.inf
    for post, (depth, starts, middles, ends) in expected.items():
        own = [clash for clash in found if clash.b == post]
        assert len(own) == len(starts), post
        for clash, start, middle, end in zip(own, starts, middles, ends, strict=True):
            assert clash.a == arm
            bar = max(ENDS, found.error / (4.0 * depth / (end - start)))
            assert abs(clash.start - start) < bar and abs(clash.end - end) < bar
            assert clash.depth == pytest.approx(depth, abs=1e-9)
            assert abs(clash.time - middle) < 0.1 * (end - start)
            shortest = min(shortest, end - start)
    return len(found), shortest


def test_planted_touches_of_a_swung_arm_are_found_and_misses_are_not():
    motion, expected = swung(np.random.default_rng(0), 8, 2.0)
    count, _ = check_planted(motion.clashes(), expected)
    assert count == 12


@pytest.mark.long
def test_a_thousand_touches_and_misses_of_a_swung_arm():
    touches, shortest = 0, np.inf
    for seed in range(3):
        motion, expected = swung(np.random.default_rng(seed), 60, 10.0)
        pairs = [("arm", f"post {k}") for k in range(60)]
        count, least = check_planted(motion.clashes(pairs), expected)
        touches, shortest = touches + count, min(shortest, least)
    assert touches > 1000
    assert shortest < 1.5e-4


ARMS = ("box", "cylinder", "mesh", "pyramid")
POSTS = ("box", "cylinder", "mesh", "side")


def as_mesh(shape):
    return cd.shapes.mesh(*shape.triangles())


def solid_swung(rng, kind, posts, speed, until):
    """The same with an arm and posts that are boxes, cylinders and meshes; kind: of the arm.

    A corner or rim of the arm goes round on a circle of radius ρ, at an angle β from the arm.  It is beyond the face
    of a post, whose normal is inclined by γ to the plane of the circle and at the height D, while ρ cos γ cos(ωt + β −
    α) > D; and within the side of a cylinder as a ball of radius 0.
    """
    m = cd.Mechanism("arm")
    long, wide, high = rng.uniform(0.04, 0.06), rng.uniform(0.006, 0.01), rng.uniform(0.005, 0.01)
    shape, axes = cd.shapes.box(long, 2 * wide, high), {}
    corners = [(long, wide), (long, -wide)]
    if kind == "cylinder":
        shape, axes = cd.shapes.cylinder(wide, long), {"z": X, "x": Z}
    elif kind == "mesh":  # an edge ahead of two others
        corners = [(1.2 * long, 0.3 * wide)]
        outline = [(0.0, -wide), (long, -wide), corners[0], (0.9 * long, wide), (0.0, wide)]
        shape = as_mesh(cd.shapes.extrusion(outline, high))
    elif kind == "pyramid":  # a corner
        corners = [(1.2 * long, 0.0)]
        base = [(0, -wide, -wide), (0, wide, -wide), (0, wide, wide), (0, -wide, wide)]
        faces = [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4), (0, 3, 2), (0, 2, 1)]
        shape = cd.shapes.mesh([*base, (1.2 * long, 0, 0)], faces)
    arm = m.body("arm")
    m.revolute("A", m.ground.frame(), arm.frame())
    arm.attach(shape, arm.frame((0.5 * long if kind in ("box", "cylinder") else 0, 0, 0), **axes))
    m.drive("motor", m["A"], lambda t: speed * t)
    rho, beta = np.hypot(*corners[0]), [np.arctan2(y, x) for x, y in corners]
    expected = {}
    for k in range(posts):
        alpha, off = 2 * np.pi * (k + rng.uniform(0.3, 0.7)) / posts, 10 ** rng.uniform(-6, -5)
        if min(abs(alpha - b - turn) for b in beta for turn in (0, 2 * np.pi)) < 0.05:
            alpha += 0.1  # a motion begins and ends apart from all posts
        sign, what = (1 if k % 2 else -1), POSTS[rng.integers(len(POSTS))]
        post = m.body(f"post {k}", fixed=True)
        edge, thick = 10 ** rng.uniform(-2.5, -2), 10 ** rng.uniform(-3, -2)
        if what == "side":
            D = rho + edge - sign * off
            half = np.arccos(min(1.0, (rho * rho + D * D - edge * edge) / (2 * rho * D)))
            post.attach(cd.shapes.cylinder(edge, 0.05), post.frame((D * np.cos(alpha), D * np.sin(alpha), 0)))
        else:
            tilt = rng.uniform(-0.5, 0.5) if kind == "pyramid" else 0.0
            D = rho * np.cos(tilt) - sign * off
            half = np.arccos(min(1.0, D / (rho * np.cos(tilt))))
            n = np.array([np.cos(tilt) * np.cos(alpha), np.cos(tilt) * np.sin(alpha), np.sin(tilt)])
            touched = rho * np.array([np.cos(alpha), np.sin(alpha), 0])
            own = {
                "box": cd.shapes.box(edge, 2 * edge, thick),
                "mesh": as_mesh(cd.shapes.box(edge, 2 * edge, thick)),
                "cylinder": cd.shapes.cylinder(edge, thick),
            }[what]
            post.attach(own, post.frame(touched + (D - touched @ n + 0.5 * thick) * n, z=n))
        if sign > 0:
            at = [alpha - b + 2 * np.pi * np.arange(-1, int(until * speed / (2 * np.pi)) + 2) for b in beta]
            at = np.sort(np.concatenate(at))
            at = at[(at - half > 0) & (at + half < until * speed)]
            expected[f"post {k}"] = (off, (at - half) / speed, at / speed, (at + half) / speed)
    return m.move(np.linspace(0, until, 11)), expected


def check_swung(seed, kind, posts, turns):
    motion, expected = solid_swung(np.random.default_rng(seed), kind, posts, 1.5, 2 * np.pi * turns / 1.5)
    return check_planted(motion.clashes([("arm", f"post {k}") for k in range(posts)]), expected)


@pytest.mark.parametrize("kind", ARMS)
def test_planted_touches_of_boxes_cylinders_and_meshes_are_found_and_misses_are_not(kind):
    count, _ = check_swung(2, kind, 4, 1)
    assert count == (4 if kind in ("box", "cylinder") else 2)


@pytest.mark.long
@pytest.mark.parametrize("kind", ARMS)
@pytest.mark.parametrize("seed", range(4))
def test_touches_and_misses_of_boxes_cylinders_and_meshes(seed, kind):
    count, shortest = check_swung(seed, kind, 12, 2)
    assert count >= 10
    assert shortest < 2e-2


def slid(rng, posts, simulated):
    """Balls thrown, or driven along a line, past posts: each is touched once, or missed."""
    m = cd.Mechanism("slide", gravity=(0, 0, -2.0))
    a, v = 2e-3, 1.5
    cart = m.body("cart", mass=1.0, inertia=1e-6 * np.eye(3))
    cart.attach(cd.shapes.sphere(a))
    if not simulated:
        m.prismatic("P", m.ground.frame(z=X), cart.frame(z=X))
        m.drive("motor", m["P"], lambda t: v * t)
    expected = {}
    for k in range(posts):
        t, b = 10 * (k + rng.uniform(0.3, 0.7)) / posts, 10 ** rng.uniform(-3.5, -2.5)
        off, angle = 10 ** rng.uniform(-6, -5), rng.uniform(0, 2 * np.pi)
        path = np.array([[0, v, 0], [0, 0, 0], [0, 0, -1.0 if simulated else 0]])  # c₀ + c₁ t + c₂ t²
        at = path @ (1, t, t * t)
        along = path[:, 1] + 2 * t * path[:, 2]
        along /= np.linalg.norm(along)
        side = np.cross(along, (0, 1, 0))
        normal = np.cos(angle) * side + np.sin(angle) * np.array([0, 1, 0])
        apart = a + b + (-off if k % 2 else off)
        post = at + apart * normal
        # |c(t) − post|² as a polynomial of τ = t − t_k
        c1, c2 = path[:, 1] + 2 * t * path[:, 2], path[:, 2]
        d = at - post
        square = [c2 @ c2, 2 * c1 @ c2, c1 @ c1 + 2 * d @ c2, 2 * d @ c1, d @ d - (a + b) ** 2]
        roots = np.roots(np.trim_zeros(square, "f"))
        real = np.sort(roots.real[(np.abs(roots.imag) < 1e-9) & (np.abs(roots.real) < 0.1)])
        for _ in range(3):  # polished
            real = real - np.polyval(square, real) / np.polyval(np.polyder(square), real)
        least = np.roots(np.trim_zeros(np.polyder(square), "f"))
        least = least.real[np.argmin(np.abs(least))]
        depth = a + b - np.sqrt(np.polyval(square, least) + (a + b) ** 2)
        assert (len(real) == 2) == (depth > 0)
        assert abs(depth) > 0.5e-6
        ball(m, f"post {k}", b, post)
        if depth > 0:
            expected[f"post {k}"] = (depth, [t + real[0]], [t + least], [t + real[1]])
    if not simulated:
        return m.move([0, 3, 10]), expected
    state = m.solve_rates(m.state, {})
    rates = state.velocities.copy()
    rates[m.state.names.index("cart"), 0] = v
    return m.simulate(10.0, state.with_rates(rates), rtol=1e-10), expected


@pytest.mark.parametrize("simulated", [False, True], ids=["driven", "thrown"])
def test_planted_touches_between_outputs(simulated):
    result, expected = slid(np.random.default_rng(1), 16, simulated)
    count, _ = check_planted(result.clashes(), expected, "cart")
    assert count == len(expected) >= 7


@pytest.mark.long
@pytest.mark.parametrize("simulated", [False, True], ids=["driven", "thrown"])
def test_hundreds_of_planted_touches_between_outputs(simulated):
    shortest = np.inf
    for seed in range(5):
        result, expected = slid(np.random.default_rng(seed), 100, simulated)
        pairs = [("cart", f"post {k}") for k in range(100)]
        shortest = min(shortest, check_planted(result.clashes(pairs), expected, "cart")[1])
    assert shortest < (2e-4 if not simulated else 1e-4)


def spans(found):
    return np.array([(clash.start, clash.end) for clash in found])


def lever(height, half_space=False):
    """A bar that goes round below a plate: its corner is highest at h = √(l² + w²) cos(ωt − β)."""
    m = cd.Mechanism("lever")
    bar = m.body("bar")
    m.revolute("A", m.ground.frame(z=(0, 1, 0), x=X), bar.frame(z=(0, 1, 0), x=X))
    bar.attach(cd.shapes.box(0.2, 0.03, 0.02))
    if half_space:
        m.ground.attach(cd.shapes.half_space(), m.ground.frame((0, 0, height), z=(0, 0, -1)))
    else:
        m.ground.attach(cd.shapes.box(1, 1, 0.1), m.ground.frame((0, 0, height + 0.05)))
    m.drive("motor", m["A"], round_and_round)
    return m


def round_and_round(t):
    return 3.0 * t


@pytest.mark.parametrize("half_space", [False, True])
def test_corners_of_a_bar_hit_a_plate_when_they_should(half_space):
    reach, tilt, height = np.hypot(0.1, 0.01), np.arctan2(0.01, 0.1), 0.09
    m = lever(height, half_space)
    found = m.move(np.linspace(0, 2, 5)).clashes([("bar", "ground")])
    half = np.arccos(height / reach)
    # each half turn two corners, (±l, w) and (±l, −w), are highest at ωt = π/2 ∓ tilt; their times overlap
    middles = np.pi / 2 + np.pi * np.arange(2)
    assert spans(found) == pytest.approx(np.array([middles - tilt - half, middles + tilt + half]).T / 3, abs=ENDS)
    assert [c.depth for c in found] == pytest.approx([reach - height] * 2, abs=1e-9)
    assert found[0].normal == pytest.approx((0, 0, 1), abs=1e-9)
    assert lever(reach + 1e-6, half_space).move([0, 1, 2]).clashes([("bar", "ground")]).ok
    near = lever(reach + 1e-3, half_space).move([0, 1, 2]).clashes([("bar", "ground")], clearance=2e-3)
    far = np.arccos((reach - 1e-3) / reach)  # the corners are 2 mm from the plate
    assert spans(near)[0] * 3 == pytest.approx(np.pi / 2 + np.array([-1, 1]) * (tilt + far), abs=ENDS)
    assert len(near) == 2 and near[0].gap == pytest.approx(1e-3, abs=1e-9) and near[0].depth == 0.0


def test_a_motion_that_is_symmetric_about_the_middle_of_its_outputs_is_not_taken_for_another():
    """x = sin(2πt) at t = 0, 1, 2: all outputs are equal, and so would be a polynomial between them."""
    m = cd.Mechanism("saw")
    cart = m.body("cart")
    m.prismatic("P", m.ground.frame(z=X), cart.frame(z=X))
    cart.attach(cd.shapes.box(0.02, 0.02, 0.02))
    m.drive("motor", m["P"], lambda t: 0.1 * cd.sin(2 * np.pi * t))
    ball(m, "post", 0.01, (0.1 + 0.02 - 1e-6, 0, 0))
    found = m.move([0.0, 1.0, 2.0]).clashes()
    half = np.arccos((0.1 - 1e-6) / 0.1) / (2 * np.pi)
    assert spans(found) == pytest.approx(np.array([[0.25 - half, 0.25 + half], [1.25 - half, 1.25 + half]]), abs=ENDS)


def test_a_corner_of_a_driver_is_resolved():
    m = cd.Mechanism("corner")
    cart = m.body("cart")
    m.prismatic("P", m.ground.frame(z=X), cart.frame(z=X))
    cart.attach(cd.shapes.box(0.02, 0.02, 0.02))
    m.drive("motor", m["P"], lambda t: 0.1 - cd.sqrt((t - 0.6180339) ** 2 + 1e-16))
    ball(m, "post", 0.01, (0.1 + 0.02 - 1e-5, 0, 0))
    (found,) = m.move(np.linspace(0, 1, 5)).clashes()
    assert (found.start, found.end) == pytest.approx((0.6180339 - 1e-5, 0.6180339 + 1e-5), abs=2e-9)


def stack():
    """Two boxes face to face, a third one that is 1 mm into the second, a lid that is joined to it, and a hook."""
    m = cd.Mechanism("stack")
    for name, z in (("one", 0.05), ("two", 0.15), ("three", 0.249), ("lid", 0.3)):
        m.body(name, position=(0, 0, z)).attach(cd.shapes.box(0.1, 0.1, 0.1))
    m.revolute("hinge", m["three"].frame((0, 0, 0.05)), m["lid"].frame((0, 0, -0.001)))
    m.body("hook", position=(0, 0, 1))
    return m


def test_overlaps_of_a_state_and_what_is_left_out():
    m = stack()
    before = m.description()
    found = m.interference()
    assert not found.ok and len(found) == 1 and found.pairs == 5
    assert (found[0].a, found[0].b) == ("two", "three")
    assert found[0].depth == pytest.approx(1e-3, abs=1e-12)
    assert found[0].volume == pytest.approx(1e-5, rel=1e-9)
    assert np.array(found[0].normal) @ Z == pytest.approx(1.0)
    assert found[0].place[2] == pytest.approx(0.1995, abs=1e-9)
    told = {one.bodies: one.reason for one in found.left_out}
    assert "no shape" in told["hook",] and "revolute 'hinge'" in told["three", "lid"]
    joined = m.interference(pairs=[("three", "lid")])
    assert [one.depth for one in joined] == pytest.approx([0.049], abs=1e-12)
    assert m.description() == before
    assert "overlap by 0.001" in found.text() and found.to_dict()["overlaps"][0]["a"] == "two"


def test_states_of_other_mechanisms_are_refused_by_name():
    m, other = stack(), stack()
    assert len(m.interference(other.state)) == 1  # an equal one
    assert len(m.interference(m.copy().state)) == 1
    other.remove("hinge")
    other.revolute("hinge", other["three"].frame((0, 0, 0.05)), other["lid"].frame((0, 0, -0.002)))
    for call in (m.interference, lambda state: m.distance_between("one", "two", state)):
        with pytest.raises(cd.ModelError, match=r"state of another mechanism \('stack'\), whose joint 'hinge' differs"):
            call(other.state)
    assert len(m.interference(m.assemble(other.state).state)) == 1
    assert len(m.interference(pickle.loads(pickle.dumps(other.state)))) == 1  # nothing is known of its mechanism


def test_distances_of_bodies():
    m = stack()
    gap = m.distance_between("one", m["three"])
    assert gap.gap == pytest.approx(0.099, abs=1e-12) and gap.normal == pytest.approx(Z, abs=1e-12)
    assert [point[2] for point in gap.points] == pytest.approx([0.1, 0.199], abs=1e-12)
    assert m.distance_between("two", "three").gap == pytest.approx(-1e-3, abs=1e-12)
    assert m.distance_between("three", "one").normal == pytest.approx((0, 0, -1), abs=1e-12)
    moved = m.state.moved({"three": ((0.5, 0, 0.249), (1, 0, 0, 0))})
    assert m.distance_between("one", "three", moved).gap == pytest.approx(np.hypot(0.4, 0.099), abs=1e-12)
    m["one"].attach(cd.shapes.sphere(0.01), m["one"].frame((0, 0, 0.13)))
    assert m.distance_between("one", "three").gap == pytest.approx(0.009, abs=1e-12)  # the nearest of its shapes


def test_bodies_that_stay_face_to_face_only_touch():
    """Also while they slide and turn: a plane separates them all the time."""
    m = cd.Mechanism("faces")
    disc = m.body("disc", position=(0, 0, 0.02))
    disc.attach(cd.shapes.cylinder(0.1, 0.02))
    m.revolute("A", m.ground.frame((0, 0, 0.02)), disc.frame())
    m.ground.attach(cd.shapes.box(1, 1, 0.02))
    m.drive("motor", m["A"], lambda t: 5 * t)
    assert m.move([0, 1, 2]).clashes([("disc", "ground")]).ok


def test_calls_that_are_wrong_are_refused_by_name():
    m = stack()
    for call, words in (
        (lambda: m.distance_between("one", "four"), "'four'"),
        (lambda: m.distance_between("one", "one"), "twice"),
        (lambda: m.distance_between("one", "hook"), "'hook' cannot be compared"),
        (lambda: m.distance_between("one", "ground"), "'ground' cannot be compared"),
        (lambda: m.distance_between("one", stack()["two"]), "another mechanism"),
        (lambda: m.interference(pairs="some"), "'some'"),
        (lambda: m.interference(pairs=[("one",)]), "a list such as"),
        (lambda: m.interference(pairs=["one", "two"]), "a list such as"),
        (lambda: m.interference(pairs=[("one", "one")]), "with itself"),
        (lambda: m.interference(pairs=[("one", "two"), ("one", "hook")]), "pairs: body 'hook' cannot be compared"),
        (lambda: m.interference(pairs=[("ground", "one")]), "pairs: body 'ground' cannot be compared: it has no shape"),
        (lambda: m.interference(3), "3"),
    ):
        with pytest.raises(cd.ModelError, match=words):
            call()
    motion = lever(0.09).move([0, 1])
    for options, words in (({"clearance": "1 mm"}, "clearance"), ({"max_seconds": 0}, "max_seconds"),
                           ({"progress": 3}, "progress"), ({"pairs": [("bar", "rod")]}, "'rod'")):  # fmt: skip
        with pytest.raises(cd.ModelError, match=words):
            motion.clashes(**options)
    with pytest.raises(cd.ModelError, match="mechanism=m"):
        pickle.loads(pickle.dumps(motion)).clashes()
    m = cd.Mechanism("open")
    m.body("sheet").attach(cd.shapes.mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)]))
    m.body("ball").attach(cd.shapes.sphere(1))
    assert "not closed" in m.interference().left_out[0].reason
    m["sheet"].attach(cd.shapes.box(0.1, 0.1, 0.1))  # is compared; the distance would be too large without the mesh
    m["ball"].attach(cd.geometry.circle(3.0))  # a curve has no inside, and is no part of the solid
    assert m.interference().pairs == 1 and len(m.interference().left_out) == 2
    with pytest.raises(cd.ModelError, match=r"'sheet' cannot be compared.*not closed"):
        m.distance_between("sheet", "ball")
    m["sheet"].detach(m["sheet"].attachments[0])
    assert m.distance_between("sheet", "ball").gap == pytest.approx(-1.05, abs=1e-12)
    m.ground.attach(cd.geometry.plane())
    with pytest.raises(cd.ModelError, match=r"'ground' cannot be compared.*plane\(\) is a curve or a surface"):
        m.distance_between("ground", "ball")


def test_coarse_outputs_of_a_simulation_are_refused():
    m = cd.Mechanism("top", gravity=(0, 0, 0))
    m.body("top", mass=1.0, inertia=np.eye(3)).attach(cd.shapes.box(1, 1, 1))
    ball(m, "post", 0.1, (3, 0, 0))
    rates = np.zeros((2, 6))
    rates[0, 5] = 10.0
    state = m.state.with_rates(rates)
    with pytest.raises(cd.ModelError, match="more outputs"):
        m.simulate(1.0, state, rtol=1e-8, times=[0, 0.5, 1]).clashes()
    assert m.simulate(1.0, state, rtol=1e-8).clashes().ok


def test_a_search_can_be_stopped_and_says_what_is_undecided():
    motion = lever(0.09).move(np.linspace(0, 2, 5))
    found = motion.clashes([("bar", "ground")], max_seconds=1e-6)
    assert found.status == "time limit" and not found.ok
    assert [(one.a, one.b, one.start, one.end) for one in found.undecided] == [("bar", "ground", 0.0, 2.0)]
    parts = []

    def stop(part):
        parts.append(part)
        raise KeyboardInterrupt

    found = motion.clashes([("bar", "ground")], progress=stop)
    assert found.status == "interrupted" and found.undecided and not found.ok
    parts.clear()
    motion.clashes([("bar", "ground")], progress=parts.append)
    assert parts == sorted(parts) and parts[-1] == 1.0


def engine(cylinders):
    """A crankshaft with a flywheel, and rod, piston and pin of each cylinder: all run free of each other."""
    m = cd.Mechanism("engine")
    radius, length, pitch = 0.04, 0.14, 0.1
    crank, fly = m.body("crank"), m.body("flywheel", position=(-0.12, 0, 0))
    m.revolute("main", m.ground.frame(z=X), crank.frame(z=X))
    m.fixed("bolts", crank.frame((-0.12, 0, 0)), fly.frame())
    fly.attach(cd.shapes.cylinder(0.15, 0.03), fly.frame(z=X))
    crank.attach(cd.shapes.cylinder(0.02, 0.1), crank.frame((-0.07, 0, 0), z=X))
    for k in range(cylinders):
        x, phase = k * pitch, 14 * np.pi * k / cylinders
        up = np.array([0, -np.sin(phase), np.cos(phase)])
        throw = radius * up + (x, 0, 0)
        top = np.array([x, 0.0, throw[2] + np.sqrt(length**2 - throw[1] ** 2)])
        lean = (top - throw) / length
        rod = m.body(f"rod {k}", position=throw, orientation=("x", np.arctan2(-lean[1], lean[2])))
        piston, pin = m.body(f"piston {k}", position=top), m.body(f"pin {k}", position=top)
        m.revolute(f"big end {k}", crank.frame(throw, z=X), rod.frame(z=X))
        m.revolute(f"small end {k}", rod.frame((0, 0, length), z=X), pin.frame(z=X))
        m.cylindrical(f"bore {k}", m.ground.frame((x, 0, 0)), piston.frame())
        m.fixed(f"press {k}", piston.frame(), pin.frame())
        crank.attach(cd.shapes.cylinder(0.012, 0.03), crank.frame(throw, z=X))
        for side in (-0.02, 0.02):
            crank.attach(
                cd.shapes.box(0.01, 0.03, 0.1), crank.frame(throw - 0.5 * radius * up + (side, 0, 0), z=up, x=X)
            )
        crank.attach(cd.shapes.cylinder(0.02, pitch - 0.05), crank.frame((x + 0.5 * pitch, 0, 0), z=X))
        rod.attach(cd.shapes.box(0.016, 0.02, length - 0.05), rod.frame((0, 0, length / 2)))
        rod.attach(cd.shapes.cylinder(0.018, 0.02), rod.frame(z=X))
        rod.attach(cd.shapes.cylinder(0.014, 0.02), rod.frame((0, 0, length), z=X))
        piston.attach(cd.shapes.cylinder(0.042, 0.02), piston.frame((0, 0, 0.03)))
        pin.attach(cd.shapes.cylinder(0.008, 0.07), pin.frame(z=X))
    m.drive("motor", m["main"], round_and_round)
    return m


def test_an_engine_runs_free_and_a_part_in_its_way_is_found():
    m = engine(3)
    ball(m, "bolt", 0.01, (0.1, 0.0, 0.04 + 0.14 + 0.04 + 0.01 - 1e-4))  # 0.1 mm below the top of the second piston
    found = m.move(np.linspace(0, 4 * np.pi / 3, 21)).clashes()
    assert {(clash.a, clash.b) for clash in found} == {("piston 1", "bolt")}
    assert len(found) == 2 and found[0].depth == pytest.approx(1e-4, abs=1e-9)
    assert found.left_out and all("joined by" in one.reason for one in found.left_out)


def test_a_mechanism_without_shapes_has_no_pairs():
    m = cd.Mechanism("bare")
    m.revolute("A", m.ground.frame(), m.body("arm").frame())
    m.drive("motor", m["A"], round_and_round)
    assert m.interference().ok and m.interference().pairs == 0
    found = m.move([0, 1]).clashes()
    assert found.ok and found.pairs == 0 and "'arm': it has no shape" in found.text()


def test_times_at_which_a_motion_is_not_known_are_undecided():
    """The driver is not defined at t = 0.4 s, where the motion is solved again first."""
    m = cd.Mechanism("guided ball")
    guided = m.body("guided")
    guided.attach(cd.shapes.sphere(0.1))
    ball(m, "far", 0.1, (0, 3, 0))
    m.prismatic("guide", m.ground.frame(z=X), guided.frame(z=X))
    m.drive("motor", m["guide"], lambda t: t + 1e-30 / (t - 0.4))
    motion = m.move([0.0, 1.0])
    assert motion.ok
    found = motion.clashes()
    assert not found.ok and not found.found
    assert "could not be solved again" in found.undecided[0].reason


def test_states_near_a_dead_point_are_few():
    """They are noisy there: division of segments ends where errors do not fall."""
    m = cd.Mechanism("slider-crank")
    crank, rod, slider = m.body("crank"), m.body("rod", position=(0.1, 0, 0)), m.body("slider", position=(0.4, 0, 0))
    m.revolute("main", m.ground.frame(), crank.frame())
    m.revolute("pin", crank.frame((0.1, 0, 0)), rod.frame())
    m.revolute("wrist", rod.frame((0.3, 0, 0)), slider.frame())
    m.prismatic("guide", m.ground.frame(z=X), slider.frame(z=X))
    for body in (crank, rod, slider):
        body.attach(cd.shapes.box(0.02, 0.02, 0.02))
    m.drive("push", m["guide"], lambda t: 0.33 + 0.05 * t)  # the crank and the rod are in line at t = 1.4 s
    start = m.state_at({"main": 1.0})
    motion = m.move([0.0, 0.5, 1.0, 1.5], start)
    assert motion.status == "dead point"
    to_the_end = Motion(motion._system, [*motion.states, motion.state], MotionStatus.DONE, "")
    whole = track(to_the_end, np.array([0.02, 0.02, 0.02]), None)
    assert len(whole.times) < 8_000 and whole.error < 1e-5
