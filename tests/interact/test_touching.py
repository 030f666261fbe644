"""Drags of parts that must not overlap, judged by planes between them (tests/separation.py)."""

from __future__ import annotations

import itertools

import numpy as np

import cardan as cd
from cardan import collide
from cardan.interact.gap_paths import between as interpolated
from cardan.interact.gap_paths import same_sides
from cardan.interact.session import SessionStatus
from cardan.math import euler
from layers import sampled
from separation import between, room

SIZE = 0.1  # [m] about that of the parts
OVERLAP = 1e-12  # of L: what a drag may leave
PASSED = (
    0.1  # of the thinnest part: an overlap on the way between two poses; parts that pass through have more than 1/2
)
FRAMES = 4  # of a drag
DRAGS = 10  # of a session
SAMPLES = (0.25, 0.5, 0.75)

X, Y, Z = np.eye(3)


def width(shape) -> float:
    """The least edge of a box around a shape [m]; infinite for a half-space."""
    if shape is None:
        return np.inf
    if isinstance(shape, cd.shapes.solids.Box):
        return float(min(shape.size))
    if isinstance(shape, cd.shapes.solids.Cylinder):
        return float(min(2.0 * shape.radius, shape.height))
    return 2.0 * float(shape.radius)


class Model:
    """A mechanism, and what the judge knows of it: shapes by body, with their frames, and which bodies may overlap."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.m = cd.Mechanism(f"drags {seed}")
        self.solids: list[tuple[str, object, np.ndarray]] = []
        self.joined: set[frozenset[str]] = set()
        self.drivers: list[str] = []
        (self._loose, self._plates, self._linkage, self._slides, self._driven)[seed % 5](rng)
        self.m.collide()

    def part(self, name, shape, at, orientation=(1.0, 0.0, 0.0, 0.0)):
        body = self.m.body(name, position=at, orientation=orientation)
        self.put(body, shape)
        return body

    def put(self, body, shape, at=(0.0, 0.0, 0.0), z=Z):
        frame = body.frame(at, z=z)
        body.attach(shape if shape is not None else cd.shapes.half_space(), frame)
        self.solids.append((body.name, shape, np.concatenate([frame.origin, frame.quaternion()])))

    def shape(self, rng):
        a, b, c = SIZE * rng.uniform(0.3, 1.0, 3)
        return (cd.shapes.box(a, b, c), cd.shapes.cylinder(0.5 * a, b), cd.shapes.sphere(0.5 * a))[rng.integers(3)]

    def _loose(self, rng):
        """Boxes, cylinders and spheres; in every other case above a half-space."""
        if rng.integers(2):
            self.put(self.m.ground, None)
        for k in range(int(rng.integers(3, 7))):
            at = SIZE * np.array([1.8 * (k % 3), 1.8 * (k // 3), 1.0])
            self.part(f"part {k}", self.shape(rng), at, euler.random(rng))

    def _plates(self, rng):
        """Plates of a thousandth of their size, on the ground and loose, and parts between them."""
        for k in range(3):
            plate = cd.shapes.box(3.0 * SIZE, 3.0 * SIZE, SIZE * rng.choice([1e-3, 1e-2]))
            self.put(self.m.ground, plate, (0.0, 0.0, 1.5 * SIZE * k))
        self.part("plate", cd.shapes.box(SIZE, SIZE, 2e-3 * SIZE), (0.0, 0.0, 0.7 * SIZE), euler.random(rng))
        for k in range(2):
            self.part(f"part {k}", self.shape(rng), (1.2 * SIZE * (2 * k - 1), 0.0, (0.75 + 1.5 * k) * SIZE))

    def _linkage(self, rng):
        """A four-bar with rods, between a loose part and two posts on the ground."""
        m, ground = self.m, self.m.ground
        lengths = 1.0, rng.uniform(2.0, 2.4), rng.uniform(1.8, 2.2), 2.2
        a = np.array([0.0, lengths[0], 0.0])
        d = np.array([lengths[3], 0.0, 0.0])
        x = np.hypot(*(d - a)[:2])
        along = (lengths[1] ** 2 - lengths[2] ** 2 + x * x) / (2.0 * x)
        e = (d - a) / x
        c = a + along * e + np.sqrt(lengths[1] ** 2 - along**2) * np.array([-e[1], e[0], 0.0])
        ends = {"crank": (0.0 * a, a), "coupler": (a, c), "rocker": (d, c)}
        for k, (name, (p, q)) in enumerate(ends.items()):
            p, q = SIZE * p, SIZE * q
            body = m.body(name, position=0.5 * (p + q))
            # each in a plane of its own, so that only what stands in their way stops them
            self.put(
                body, cd.shapes.cylinder(0.06 * SIZE, float(np.linalg.norm(q - p))), (0, 0, 0.2 * SIZE * k), z=q - p
            )
        joints = (("A", "ground", "crank", 0.0 * a), ("B", "crank", "coupler", a), ("C", "coupler", "rocker", c))
        for name, one, other, at in (*joints, ("D", "ground", "rocker", d)):
            bodies = [ground if body == "ground" else m.bodies[body] for body in (one, other)]
            places = [SIZE * at - (0.0 if body is ground else np.array(body.position)) for body in bodies]
            m.revolute(name, *(body.frame(p, z=Z) for body, p in zip(bodies, places, strict=True)))
            self.joined.add(frozenset((one, other)))
        self.put(ground, cd.shapes.cylinder(0.15 * SIZE, SIZE), (-0.9 * SIZE, 0.3 * SIZE, 0.0))
        self.put(ground, cd.shapes.box(0.3 * SIZE, 0.3 * SIZE, SIZE), (3.4 * SIZE, 1.2 * SIZE, 0.2 * SIZE))
        self.part("loose", self.shape(rng), SIZE * np.array([1.2, 3.4, 0.0]), euler.random(rng))

    def _slides(self, rng):
        """Parts on slides and pivots with limits, one after the other, and a loose ball."""
        m = self.m
        for k in range(4):
            at = SIZE * np.array([1.3 * k, 0.0, 0.0])
            body = self.part(f"part {k}", self.shape(rng), at, euler.random(rng))
            R = np.asarray(euler.matrix(body.orientation))
            if k % 2:
                m.cylindrical(f"joint {k}", m.ground.frame(at, z=X), body.frame(z=R.T @ X))
            else:
                m.prismatic(f"joint {k}", m.ground.frame(at, z=X, x=Y), body.frame(z=R.T @ X, x=R.T @ Y))
                m.limit(f"limit {k}", f"joint {k}", lower=-2.0 * SIZE, upper=2.5 * SIZE)
            self.joined.add(frozenset(("ground", body.name)))
        self.put(m.ground, cd.shapes.box(0.02 * SIZE, SIZE, SIZE), (6.5 * SIZE, 0.9 * SIZE, 0.0))
        self.part("ball", cd.shapes.sphere(0.3 * SIZE), SIZE * np.array([2.0, 1.0, 0.0]))

    def _driven(self, rng):
        """Slides with drivers, whose parts meet each other, a wall, and loose parts in their way."""
        m = self.m
        for k in range(3):
            at, along = SIZE * np.array([0.0, 1.5 * k, 0.0]), rng.normal(size=3)
            body = self.part(f"part {k}", self.shape(rng), at, euler.random(rng))
            R = np.asarray(euler.matrix(body.orientation))
            joint = m.cylindrical if k == 2 else m.prismatic
            x = np.cross(along, X)
            joint(f"joint {k}", m.ground.frame(at, z=along, x=x), body.frame(z=R.T @ along, x=R.T @ x))
            m.drive(f"motor {k}", m[f"joint {k}"].of("displacement") if k == 2 else m[f"joint {k}"], 0.0)
            self.drivers.append(f"motor {k}")
            self.joined.add(frozenset(("ground", body.name)))
        for k in range(2):
            at = SIZE * np.array([1.5, 1.5 * k, 0.7])
            self.part(f"loose {k}", self.shape(rng), at, euler.random(rng))

    def pairs(self):
        for (a, s, place), (b, t, other) in itertools.combinations(self.solids, 2):
            if a != b and frozenset((a, b)) not in self.joined:
                yield (a, s, place), (b, t, other)

    def poses(self, names, coordinates, solids):
        found = []
        for name, _, place in solids:
            body = np.array([0, 0, 0, 1.0, 0, 0, 0]) if name == "ground" else coordinates[names.index(name)]
            turned = euler.multiply(body[3:], place[3:])
            found.append(
                np.concatenate([body[:3] + euler.rotate(body[3:], place[:3]), turned / np.linalg.norm(turned)])
            )
        return found

    def least_room(self, names, coordinates) -> list[tuple[float, float, str]]:
        """Of every pair: its room [m], the width of the thinner one, and their names."""
        found = []
        for one, other in self.pairs():
            (_, s, _), (_, t, _) = one, other
            a, b = self.poses(names, coordinates, (one, other))
            if s is not None and np.linalg.norm(a[:3] - b[:3]) > reach(s) + reach(t):
                continue
            known = [collide.half_space() if x is None else x for x in (s, t)]
            hint = collide.gap(known[0], a, known[1], b).normal
            gap = between(s, a, t, b, hint)
            gap = gap if gap >= 0.0 else room(s, a, t, b, hint)
            found.append((gap, min(width(s), width(t)), f"{one[0]} {other[0]}"))
        return found


def reach(shape) -> float:
    """Radius about the middle [m]."""
    if isinstance(shape, cd.shapes.solids.Box):
        return 0.5 * float(np.linalg.norm(shape.size))
    if isinstance(shape, cd.shapes.solids.Cylinder):
        return float(np.hypot(shape.radius, 0.5 * shape.height))
    return float(shape.radius)


def watched(session):
    """Lets a session tell its pose after every sub-step."""
    contacts, seen = session._contacts, [session.coordinates.copy()]
    for name in ("_free_step", "_pressed_step"):

        def step(own=getattr(contacts, name)):  # noqa: B008  # the method of this turn of the loop
            found = own()
            if not np.array_equal(seen[-1], session.coordinates):
                seen.append(session.coordinates.copy())
            return found

        setattr(contacts, name, step)
    return seen


def drag_and_judge(seed: int) -> tuple[int, int, int]:
    """Drags of one session; returns their number, how many ended at a contact, and how many frames failed."""
    model = Model(seed)
    rng, m = model.rng, model.m
    session = m.session()
    names = list(session.state.names)
    length = SIZE  # the least that L may be
    seen = watched(session)
    ended = stuck = 0
    for _ in range(DRAGS):
        body = names[rng.integers(len(names))]
        hand = session.grasp(body, 0.3 * SIZE * rng.uniform(-1, 1, 3), pose=bool(rng.integers(4) == 0))
        others = [one for one in model.solids if one[0] != body]
        goal = model.poses(names, session.coordinates, [others[rng.integers(len(others))]])[0][:3]
        start = np.array(hand.point)
        far = rng.choice([1.0, 1.0, 1.0, 10.0])  # into the other part, or through it
        if model.drivers:
            session.drive(model.drivers[rng.integers(len(model.drivers))], SIZE * rng.uniform(-4.0, 4.0))
        for frame in range(FRAMES):
            hand.target = start + far * min(1.0, (frame + 1) / (FRAMES - 1)) * (goal - start)
            first = len(seen) - 1
            status = session.step()
            stuck += status >= SessionStatus.STUCK
            assert session.residual < 1e-11
            for gap, _, pair in model.least_room(names, session.coordinates):
                assert gap >= -OVERLAP * length, (seed, pair, gap)
            for one, other in itertools.pairwise(seen[first:]):
                for part in SAMPLES:
                    for gap, thin, pair in model.least_room(names, interpolated(one, same_sides(one, other), part)):
                        assert gap >= -PASSED * thin, (seed, pair, gap, part)
        ended += bool(session.touching)
        hand.release()
    return DRAGS, ended, stuck


@sampled("seed", range(1000), keep=2)
def test_drags_end_at_contacts_without_overlaps(seed):
    drag_and_judge(seed)


def test_hands_that_are_as_near_as_they_can_be_are_not_stuck():
    """Up to rounding of the distance: these drags had nine such frames."""
    assert drag_and_judge(3)[2] == 0


def pushed():
    """A cart on a driven slide, a loose block in its way, and a wall behind it."""
    m = cd.Mechanism("pushed")
    cart = m.body("cart")
    cart.attach(cd.shapes.box(0.1, 0.1, 0.1))
    m.prismatic("slide", m.ground.frame(z=X), cart.frame(z=X))
    m.drive("motor", "slide", 0.0)
    m.ground.attach(cd.shapes.box(0.1, 1.0, 1.0), m.ground.frame((0.6, 0, 0)))
    m.body("block", position=(0.25, 0, 0)).attach(cd.shapes.box(0.1, 0.1, 0.1))
    m.collide("all", joined=True)
    return m


def test_a_driven_part_pushes_others_until_it_is_blocked_and_comes_back():
    session = pushed().session()
    session.drive("motor", 1.0)
    for _ in range(45):
        status = session.step()
        assert session.state["block"].position[0] - session.state["cart"].position[0] >= 0.1 - 1e-13
        assert session.state["block"].position[0] <= 0.5 + 1e-13
    assert status == SessionStatus.STUCK
    assert abs(session.state["cart"].position[0] - 0.4) < 1e-10
    assert {frozenset((one.a, one.b)) for one in session.touching} == {
        frozenset(("cart", "block")),
        frozenset(("ground", "block")),
    }
    session.drive("motor", -0.3)
    for _ in range(12):
        status = session.step()
    assert status == SessionStatus.IDLE
    assert abs(session.state["cart"].position[0] + 0.3) < 1e-12
    assert abs(session.state["block"].position[0] - 0.5) < 1e-10  # nothing is pulled


def test_drags_with_contacts_are_replayed_bit_by_bit_and_taken_back():
    m = pushed()
    session = m.session()
    start = session.coordinates.copy()
    for _ in range(2):  # the second time after a return to the start
        record = session.record()
        session.drive("motor", 0.2)
        hand = session.grasp("block", (0, 0.05, 0))
        hand.target = (0.3, 0.3, 0.1)
        for _ in range(8):
            session.step()
        hand.target = (0.8, 0.0, 0.0)  # into the wall
        for _ in range(20):
            session.step()
        assert session.touching
        hand.release()
        record.stop()
        assert np.array_equal(record.replay(m).coordinates, session.coordinates)
        session.restore()
        assert np.array_equal(session.coordinates, start) and not session.touching
