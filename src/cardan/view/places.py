"""Where joints are on bodies, and the plan of flat mechanisms: which bodies lie in one plane, and in which layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cardan.constraints.registry import FeatureKind
from cardan.joints import Joint
from cardan.shapes.shape import FloatArray
from cardan.system.formulas import Formula
from cardan.system.parts import Frame, Point
from cardan.system.relations import Motion
from cardan.system.state import State
from cardan.system.tables import ABOUT_Z, ANYHOW, CROSSED, STILL

if TYPE_CHECKING:
    from cardan.mechanism import Mechanism

PARALLEL = 1e-6  # of unit vectors
GAP = 0.15  # between layers, relative to their thickness


class Form(Enum):
    """What a joint looks like, or one end of it: by the motion that its kind declares, or else by a word."""

    HINGE = Motion(0, ABOUT_Z)
    BALL = Motion(0, ANYHOW)
    CROSS = Motion(0, CROSSED)
    SLIDE = Motion(1, STILL)
    SLEEVE = Motion(1, ABOUT_Z)
    PLANE = Motion(2, ABOUT_Z)
    WELD = Motion(0, STILL)
    SCREW = "screw"
    ARROWS = "arrows"  # along axes, whose origins are no joint points
    ROD = "rod"
    RAIL, ROLLER = "rail", "roller"  # the two ends
    TABLE = "table"
    TIP = "tip"  # on a shape that is drawn by itself
    SHAPES = "shapes"  # drawn by themselves
    MARKS = "marks"  # a ball at each end


SLIDING = (Form.SLIDE, Form.SLEEVE, Form.RAIL)
FLAT = (Form.HINGE, Form.ROD, *SLIDING, Form.ROLLER, Form.ARROWS)  # of joints that a flat body may have


class Look(NamedTuple):
    """The form of a joint; of a rail or table: at which end it is, and which axis there is along or normal to it."""

    form: Form
    end: int = 0
    axis: int = 2


def look_of(joint: Joint) -> Look:
    """By the motion that the kind of the joint declares, or else by its ends, equations and coordinates."""
    kind = joint.kind
    if "face" in kind.takes:
        return Look({"face": Form.SHAPES, "point": Form.TIP}.get(kind.takes[0], Form.MARKS))
    if not kind.is_between_places:
        return Look(Form.MARKS)
    if kind.thread is not None:
        return Look(Form.SCREW)
    if kind.motion in [form.value for form in Form]:
        return Look(Form(kind.motion))
    if all(f.kind is FeatureKind.VECTOR for relation in joint.relations for f in relation.features):
        return Look(Form.ARROWS)
    found = [joint.of(word) for word in kind.coordinates]
    if [one.kind for one in found] == ["distance"]:
        return Look(Form.ROD)
    axes = [one.features[0] for one in found if one.kind == "displacement"]
    lengths = sum(relation.primitive.equations for relation in joint.relations if relation.primitive.unit == "m")
    # with options, the line or plane of its motion is not that of the frame
    if len(axes) in (1, 2) and len(axes) == 3 - lengths and not kind.options:
        end = next(k for k, one in enumerate(joint.ends) if one.body is axes[0].body)
        along = [k for k, word in enumerate("xyz") if joint.ends[end].axis(word) in axes]
        return Look(Form.RAIL, end, along[0]) if len(axes) == 1 else Look(Form.TABLE, end, 3 - sum(along))
    return Look(Form.MARKS)


class Place(NamedTuple):
    """An end of a joint on a body: origin [m] and axes as columns, in body axes; the joint, its form, which end."""

    joint: str
    form: Form
    end: int
    body: str
    origin: FloatArray
    axes: FloatArray

    @property
    def key(self) -> tuple[str, int]:
        """Names the place within the mechanism."""
        return self.joint, self.end

    @property
    def z(self) -> FloatArray:
        """The axis of the joint, in body axes."""
        return self.axes[:, 2]

    @property
    def is_point(self) -> bool:
        """Whether its origin is a point where the body is joined."""
        return self.form is not Form.ARROWS


def numbers_in(values: Iterable[Any], state: State) -> FloatArray:
    """Numbers; formulas of design parameters have their value in a state."""
    return np.array(
        [value.at(state.variables) if isinstance(value, Formula) else value for value in values], dtype=float
    )


def parameter_in(joint: Any, word: str, state: State, otherwise: Any = None) -> float:
    """A parameter of a joint, as a number; that of a function of time is the one at the time of the state."""
    for relation in joint.relations:
        for _, function in relation.template.timed:
            if function.name == word:
                return float(function.jet(state.time).value)
    return float(numbers_in([dict(joint.parameters).get(word, otherwise)], state)[0])


def places_of(mechanism: Mechanism, state: State) -> list[Place]:
    """All ends of joints that are frames or points."""
    found = []
    for name, joint in mechanism.joints.items():
        form, carrier, axis = look_of(joint)
        for k, end in enumerate(joint.ends):
            own = Form.ROLLER if form is Form.RAIL and k != carrier else form
            if isinstance(end, Frame):
                columns = [numbers_in(v, state) for v in (end.x, end.y, end.z)]
                shift = axis + 1 if k == carrier else 0  # z is along a rail, and normal to a table
                axes = np.column_stack([columns[(shift + i) % 3] for i in range(3)])
                found.append(Place(name, own, k, end.body.name, numbers_in(end.origin, state), axes))
            elif isinstance(end, Point):
                found.append(Place(name, own, k, end.body.name, numbers_in(end.position, state), np.eye(3)))
    return found


def distinct(points: Iterable[Any], tolerance: float, columns: int = 3) -> FloatArray:
    """Points without repetitions, shape (n, 3); only the first columns are compared."""
    kept: list[FloatArray] = []
    for p in points:
        if all(np.abs(p[:columns] - q[:columns]).max() > tolerance for q in kept):
            kept.append(np.asarray(p, dtype=float))
    return np.array(kept).reshape(-1, 3)


def axes_from(z: Any, x: Any = None) -> FloatArray:
    """Right-handed axes as columns with that z [any length]; x near the given one, or anywhere."""
    z = np.asarray(z, dtype=float) / np.linalg.norm(z)
    if x is None or np.linalg.norm(np.cross(z, x)) < 1e-9 * np.linalg.norm(x):
        x = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.asarray(x, dtype=float) - (np.asarray(x, dtype=float) @ z) * z
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def sizes_of(by_body: Mapping[str, Sequence[Place]], mechanism: Mechanism) -> tuple[float, float]:
    """The usual and the smallest distance [m] between neighbouring joints of a body.

    If no body has two joints, those of the ground count; if there are none, the distances of the bodies.
    """
    spans: list[float] = []
    nearest: list[float] = []
    far: list[float] = []
    ground: list[float] = []
    for name, places in by_body.items():
        points = distinct([p.origin for p in places if p.is_point], 1e-9)
        if len(points) > 1:
            apart = np.linalg.norm(points[:, None] - points[None], axis=2) + np.diag(np.full(len(points), np.inf))
            (ground if name == "ground" else spans).append(float(np.median(apart.min(axis=1))))
            (far if name == "ground" else nearest).append(float(apart.min()))
    every = spans or ground
    if every:
        return float(np.median(every)), min(nearest or far)
    size = max((float(np.linalg.norm(body.position)) for body in mechanism.bodies.values()), default=0.0) or 1.0
    return size, size


class _Sets:
    """Disjoint sets of keys."""

    def __init__(self) -> None:
        self.parent: dict[Any, Any] = {}

    def find(self, key: Any) -> Any:
        self.parent.setdefault(key, key)
        while self.parent[key] != key:
            self.parent[key] = self.parent[self.parent[key]]
            key = self.parent[key]
        return key

    def join(self, a: Any, b: Any) -> None:
        self.parent[self.find(b)] = self.find(a)


class Plan:
    """Flat bodies, their common normals, their layers, and the pins through them.

    ``normals``: unit normal by body, in its axes, the same direction for all bodies that are hinged together.
    ``normal``: the same in world, if all bodies are flat and parallel.  ``pins``: places that share one hinge axis and
    one plane.  ``thickness`` [m]: of a layer.
    """

    def __init__(self, mechanism: Mechanism, state: State, places: Sequence[Place], r: float) -> None:
        self.state, self.r = state, r
        self.by_key = {place.key: place for place in places}
        by_body: dict[str, list[Place]] = {}
        for place in places:
            by_body.setdefault(place.body, []).append(place)
        flat = {name for name, here in by_body.items() if name != "ground" and _is_flat(here)}
        hinged = flat | {"ground"}
        self.hinges = [p for p in places if p.form is Form.HINGE and p.body in hinged and self._other(p).body in hinged]
        self.normals = self._normals(flat, by_body)
        world = [state[name].matrix @ n for name, n in self.normals.items()]
        all_flat = bool(world) and all(name in self.normals for name in by_body if name != "ground")
        parallel = all_flat and all(world[0] @ n > 1.0 - 1e-3 for n in world)
        self.normal = world[0] if parallel else None
        self._tolerance = 1e-3 * r
        self._assign(by_body)

    def _other(self, place: Place) -> Place:
        return self.by_key[place.joint, 1 - place.end]

    def partner(self, place: Place) -> str:
        """The body at the other end of a joint."""
        return self._other(place).body if (place.joint, 1 - place.end) in self.by_key else ""

    def _normals(self, flat: set[str], by_body: Mapping[str, Sequence[Place]]) -> dict[str, FloatArray]:
        found: dict[str, FloatArray] = {}
        for root in [name for name in by_body if name in flat]:
            if root in found:
                continue
            first = next(p for p in by_body[root] if p.form is Form.HINGE)
            group, queue = {root: first.z}, [root]
            while queue:
                name = queue.pop()
                for p in by_body[name]:
                    other = self._other(p) if p.form is Form.HINGE else p
                    if other.body in flat and other.body not in group:
                        group[other.body] = np.sign(group[name] @ p.z) * other.z
                        queue.append(other.body)
            world = self.state[root].matrix @ group[root]
            sign = 1.0 if world @ (0.31, -0.62, 0.72) >= 0.0 else -1.0  # towards the usual viewer
            found |= {name: sign * n for name, n in group.items()}
        return found

    def is_flat(self, place: Place) -> bool:
        """Whether a place is a hinge of a flat mechanism."""
        return place.key in self._pin_of

    def normal_at(self, place: Place) -> FloatArray:
        """The common normal, in the axes of a hinge's body."""
        if place.body in self.normals:
            return self.normals[place.body]
        other = self._other(place)
        return np.asarray(np.sign(self.normals[other.body] @ other.z) * place.z)

    def axes(self, name: str) -> FloatArray:
        """Axes of a flat body as columns, with the normal as z."""
        return axes_from(self.normals[name], np.array([1.0, 0.0, 0.0]))

    def level(self, place: Place) -> int:
        """Number of the height of a place along the normal of its body."""
        return round(float(self.normals[place.body] @ place.origin) / self._tolerance)

    def height(self, name: str, level: int) -> float:
        """The height [m] of a level."""
        return level * self._tolerance

    def offset(self, name: str, level: int) -> float:
        """Displacement [m] of a body's layer along the normal."""
        return self.layers.get((name, level), 0) * self.pitch

    @property
    def pitch(self) -> float:
        """Distance [m] between layers."""
        return (1.0 + GAP) * self.thickness

    def ground_offset(self, place: Place) -> float:
        """Displacement [m] of the ground's bearing: one layer behind everything on its pin."""
        return self.reach(self._pins[self._pin_of[place.key]])[0] + 0.5 * self.thickness

    def reach(self, pin: Sequence[Place]) -> tuple[float, float]:
        """From where to where [m] a pin goes along the normal, from its joints' plane."""
        layers = [self.layers[p.body, self.level(p)] for p in pin if p.body in self.normals]
        low = min(layers) - (1 if any(p.body == "ground" for p in pin) else 0)
        return low * self.pitch - 0.5 * self.thickness, max(layers) * self.pitch + 0.5 * self.thickness

    def _assign(self, by_body: Mapping[str, Sequence[Place]]) -> None:
        pins, planes = _Sets(), _Sets()
        hinges = [p for p in self.hinges if p.body in self.normals or self._other(p).body in self.normals]
        for p in hinges:
            pins.join((p.joint, 0), (p.joint, 1))
            other = self._other(p)
            if p.body in self.normals and other.body in self.normals:
                planes.join((p.body, self.level(p)), (other.body, self.level(other)))
        self._join_pins(hinges, pins, planes)
        self._pins: dict[Any, list[Place]] = {}
        for p in hinges:
            self._pins.setdefault(pins.find(p.key), []).append(p)
        self._pin_of = {p.key: pins.find(p.key) for p in hinges}
        self.pins = list(self._pins.values())
        nodes = dict.fromkeys((p.body, self.level(p)) for p in hinges if p.body in self.normals)
        conflicts: dict[Any, set[Any]] = {node: set() for node in nodes}
        for pin in self.pins:
            here = [(p.body, self.level(p)) for p in pin if p.body in self.normals]
            for node in here:
                conflicts[node] |= {other for other in here if other != node}
        self._overlaps(nodes, planes, by_body, conflicts)
        self.layers: dict[Any, int] = {}
        for node in nodes:
            taken = {self.layers[other] for other in conflicts[node] if other in self.layers}
            self.layers[node] = next(k for k in range(len(taken) + 1) if k not in taken)
        self.thickness = self._thickness(by_body)

    def _join_pins(self, hinges: Sequence[Place], pins: _Sets, planes: _Sets) -> None:
        """Hinges of a body at one place have one pin, and lie in one plane."""
        seen: dict[str, list[Place]] = {}
        for p in hinges:
            for q in seen.setdefault(p.body, []):
                if np.abs(p.origin - q.origin).max() <= self._tolerance:
                    pins.join(p.key, q.key)
                    for a, b in ((p, q), (self._other(p), self._other(q))):
                        if a.body in self.normals and b.body in self.normals:
                            planes.join((a.body, self.level(a)), (b.body, self.level(b)))
            seen[p.body].append(p)

    def _thickness(self, by_body: Mapping[str, Sequence[Place]]) -> float:
        """Of all flat bodies: thin enough for their layers between the levels of each body."""
        thickness = 1.5 * self.r
        count = max(self.layers.values(), default=0) + 2
        for name, places in by_body.items():
            if name in self.normals:
                levels = sorted({self.level(p) for p in places if p.form is Form.HINGE})
                if len(levels) > 1:
                    spacing = min(b - a for a, b in pairwise(levels)) * self._tolerance
                    thickness = min(thickness, spacing / (count * (1.0 + GAP)))
        return thickness

    def _overlaps(self, nodes: Any, planes: _Sets, by_body: Mapping[str, Sequence[Place]], conflicts: Any) -> None:
        """Bodies of one plane that overlap in the state are in conflict."""
        ends: dict[Any, FloatArray] = {}
        for name, level in nodes:
            here = [p for p in by_body[name] if p.is_point and self.level(p) == level]
            pose = self.state[name]
            world = distinct([pose.point(p.origin) for p in here], self._tolerance)
            ends[name, level] = np.array([(p, q) for k, p in enumerate(world) for q in world[k:]])
        groups: dict[Any, list[Any]] = {}
        for node in nodes:
            groups.setdefault(planes.find(node), []).append(node)
        for group in groups.values():
            normal = self.state[group[0][0]].matrix @ self.normals[group[0][0]]
            flat = axes_from(normal)[:, :2]
            for k, a in enumerate(group):
                for b in group[:k]:
                    if b not in conflicts[a] and _distance(ends[a] @ flat, ends[b] @ flat) < 4.2 * self.r:
                        conflicts[a].add(b)
                        conflicts[b].add(a)


def _is_flat(places: Sequence[Place]) -> bool:
    """Whether all hinges are parallel, and all slides perpendicular to them."""
    axes = [p.z for p in places if p.form is Form.HINGE]
    if not axes or any(p.form not in FLAT for p in places):
        return False
    if any(np.linalg.norm(np.cross(axes[0], z)) > PARALLEL for z in axes):
        return False
    return all(abs(axes[0] @ p.z) < PARALLEL for p in places if p.form in SLIDING)


def _distance(a: FloatArray, b: FloatArray) -> float:
    """Smallest distance between plane segments, shape (n, 2, 2) each: zero where two cross."""
    best = np.inf
    for p, q in a:
        for s, t in b:
            d, e = q - p, t - s
            across = d[0] * e[1] - d[1] * e[0]
            if abs(across) > 1e-12:
                w = s - p
                u, v = (w[0] * e[1] - w[1] * e[0]) / across, (w[0] * d[1] - w[1] * d[0]) / across
                if 0.0 <= u <= 1.0 and 0.0 <= v <= 1.0:
                    return 0.0
            for x, y, z in ((p, s, t), (q, s, t), (s, p, q), (t, p, q)):
                along = z - y
                k = min(max(float((x - y) @ along) / max(float(along @ along), 1e-300), 0.0), 1.0)
                best = min(best, float(np.linalg.norm(x - y - k * along)))
    return best
