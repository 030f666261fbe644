"""A State: poses of all bodies, velocities, accelerations, counted angles and time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from cardan.calls import explains
from cardan.errors import ModelError, ReadOnlyError
from cardan.math import euler
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.html import Table, as_html, table_of
from cardan.system.orientation import orientation
from cardan.system.saving import Saved

FloatArray = NDArray[np.float64]

OTHER_POSES: Final = "state.moved({body: (position, quaternion)}) returns a state with other poses"
WAYS: Final = {  # by attribute: how to get a state in which it differs
    "time": "pass time= to m.assemble(state), or use state.with_time(time)",
    "variables": "state.with_variables({name: value}) returns a state with other values",
    **dict.fromkeys(("velocities", "accelerations"), "state.with_rates(velocities) returns a state with others"),
}
_set = object.__setattr__  # for the constructor of poses: their __setattr__ raises


@explains()
class Pose:
    """Pose of one body: position [m] in world, quaternion (w, x, y, z), matrix A body → world; velocities, if known."""

    __slots__ = ("_rates", "position", "quaternion")
    _rates: FloatArray | None
    position: FloatArray
    quaternion: FloatArray

    def __init__(self, position: FloatArray, quaternion: FloatArray, rates: FloatArray | None = None) -> None:
        """rates: ṙ in world and ω in body axes, shape (6,)."""
        _set(self, "position", position)
        _set(self, "quaternion", quaternion)
        _set(self, "_rates", rates)

    def __setattr__(self, name: str, *value: Any) -> NoReturn:
        raise ReadOnlyError(f"{name!r} of a pose cannot be set: it is read-only; {OTHER_POSES}")

    __delattr__ = __setattr__

    def __reduce__(self) -> tuple[Any, ...]:
        return Pose, (self.position, self.quaternion, self._rates)

    @property
    def velocity(self) -> FloatArray:
        """ṙ of the body's origin [m/s] in world axes, shape (3,)."""
        return self._known_rates()[:3]

    @property
    def angular_velocity(self) -> FloatArray:
        """ω [rad/s] in world axes, shape (3,)."""
        return np.asarray(euler.rotate(self.quaternion, self._known_rates()[3:]))

    def velocity_of(self, local: Any) -> FloatArray:
        """Velocity [m/s] in world axes of a point given in body axes: ṙ + ω × A s, shape (3,)."""
        return np.asarray(self.velocity + np.cross(self.angular_velocity, self.vector(local)))

    def _known_rates(self) -> FloatArray:
        if self._rates is None:
            raise ModelError("this pose has no velocities; states of m.move, m.simulate and m.solve_rates have them")
        return self._rates

    @property
    def matrix(self) -> FloatArray:
        """A(p), shape (3, 3)."""
        return euler.matrix(self.quaternion)

    def point(self, local: Any) -> FloatArray:
        """World position [m] of a point given in body axes."""
        return self.position + self.vector(local)

    def vector(self, local: Any) -> FloatArray:
        """World components of a vector given in body axes."""
        return self.matrix @ np.array(check.vector(local, "a point or vector in body axes"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pose):
            return NotImplemented
        same = np.array_equal(self.position, other.position) and np.array_equal(self.quaternion, other.quaternion)
        return bool(same)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def __repr__(self) -> str:
        return f"Pose(position={self.position.tolist()}, quaternion={self.quaternion.tolist()})"


GROUND_POSE = Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(6))
for _array in (GROUND_POSE.position, GROUND_POSE.quaternion, GROUND_POSE._known_rates()):
    _array.setflags(write=False)


class Index(dict[str, int]):
    """Numbers of bodies by name; ``contacts``: by name, what reads them in a state (:class:`Touch`).

    ``joints``: by name, those of the mechanism when it was packed; None where they are not known, as after pickling.
    ``contents``: all items of the mechanism then, likewise.
    """

    contacts: Mapping[str, Touch] = MappingProxyType({})
    joints: Mapping[str, Any] | None = None
    contents: Any = None

    def joint(self, key: str) -> Any:
        """A joint by its name, or a coordinate by "joint.coordinate"."""
        joints = self.joints
        if joints is None:
            raise ModelError(
                f"joint {key!r} was given by its name, but this result was pickled or copied without its mechanism; "
                "pass the joint itself, such as m['A']"
            )
        of, _, word = key.rpartition(".")
        found = joints.get(key)
        if found is None and hasattr(joints.get(of), "of"):
            return joints[of].of(word)
        if found is None and key in self:
            raise ModelError(f"{key!r} was given, which is a body; it must be a joint or a coordinate, such as m['A']")
        if not hasattr(found, "of"):
            raise check.unknown(key, "joint", [name for name, joint in joints.items() if hasattr(joint, "of")])
        return found


class Touch(NamedTuple):
    """The shapes of a contact, the frames they are in, and the keys of its coordinates in a state.

    ``places``, shape (2, 7): origin [m] and quaternion in body axes, on the bodies of these names ("" for the ground).
    """

    pair: Any
    bodies: tuple[str, str]
    places: FloatArray
    keys: tuple[str, ...]

    def read(self, state: State) -> Any:
        """The contact in a state."""
        return self.pair.read(*self._placed(state))

    def nearly(self, state: State) -> Any:
        """What a regular contact is near to, as a status."""
        return self.pair.nearly(*self._placed(state))

    def is_behind(self, state: State) -> bool:
        """Whether one shape is wholly on the wrong side of the other's tangent plane at the contact."""
        return bool(self.pair.is_behind(*self._placed(state)))

    def _placed(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Frames of both shapes in world, and contact coordinates."""
        poses = np.empty((2, layout.POSE))
        for k, (name, place) in enumerate(zip(self.bodies, self.places, strict=True)):
            pose = state[name] if name else GROUND_POSE
            poses[k, :3] = pose.point(place[:3])
            poses[k, 3:] = euler.multiply(pose.quaternion, place[3:])
        return poses, np.array([state.angles.get(key, 0.0) for key in self.keys])


def _refusal(name: str) -> Callable[..., NoReturn]:
    """The setter and deleter of an attribute of states."""

    def refuse(*_: Any) -> NoReturn:
        raise ReadOnlyError(f"{name!r} of a state cannot be set: it is read-only; {WAYS.get(name, OTHER_POSES)}")

    return refuse


def _read_only(name: str) -> property:
    return property(attrgetter(f"_{name}"), _refusal(name), _refusal(name))


@explains()
class State(Saved, Mapping[str, Pose]):
    """Poses of the bodies of a mechanism by name, with velocities and time.

    ``coordinates`` [m, 1], shape (bodies, 7): r and p of each body.
    ``velocities`` [m/s, rad/s], shape (bodies, 6): ṙ in world and ω in body axes, or None where they are not known;
    ``accelerations`` their derivatives.
    ``angles`` [rad]: the counted angles by joint, with whole turns; ``turns``: the whole turns alone.  ``time`` [s].
    ``variables``: values of the design parameters by name.
    A state is immutable: ``moved`` returns a new one.
    """

    __slots__ = (
        *("_accelerations", "_angles", "_coordinates", "_drawn", "_index", "_names", "_time", "_variables"),
        "_velocities",
    )
    if TYPE_CHECKING:
        names: tuple[str, ...]
        coordinates: FloatArray
        velocities: FloatArray | None
        accelerations: FloatArray | None
        time: float
    else:  # read from the slots, since a method __setattr__ would make constructors take twice the time
        names = _read_only("names")
        coordinates = _read_only("coordinates")
        velocities = _read_only("velocities")
        accelerations = _read_only("accelerations")
        time = _read_only("time")

    def __init__(
        self,
        names: tuple[str, ...],
        index: Mapping[str, int],
        coordinates: FloatArray,
        *,
        velocities: FloatArray | None = None,
        accelerations: FloatArray | None = None,
        angles: Mapping[str, float] | None = None,
        time: float = 0.0,
        variables: Mapping[str, float] | None = None,
        drawn: Mapping[str, float] | None = None,
    ) -> None:
        """drawn: variables that are never changed in place; they are copied when they are first read."""
        if coordinates.shape != (len(names), layout.POSE):  # kernels trust it
            raise ModelError(
                f"the coordinates of a state have shape {coordinates.shape}; it must be {(len(names), layout.POSE)}, "
                "r and p of each body"
            )
        for array in (coordinates, velocities, accelerations):
            if array is not None:
                array.setflags(write=False)
        self._names = names
        self._index = index
        self._coordinates = coordinates
        self._velocities = velocities
        self._accelerations = accelerations
        self._angles: dict[str, float] = dict(angles) if angles else {}
        self._time = time
        self._drawn = drawn
        self._variables: dict[str, float] = dict(variables) if variables else {}

    @property
    def angles(self) -> Mapping[str, float]:
        """Counted angles [rad] by joint, with whole turns; read-only."""
        return MappingProxyType(self._angles)

    @property
    def variables(self) -> Mapping[str, float]:
        """Values of the design parameters by name; read-only."""
        drawn = self._drawn
        if drawn is not None:  # threads may both copy it
            self._variables = dict(drawn)
            self._drawn = None
        return MappingProxyType(self._variables)

    if not TYPE_CHECKING:
        angles = angles.setter(_refusal("angles")).deleter(_refusal("angles"))
        variables = variables.setter(_refusal("variables")).deleter(_refusal("variables"))

    def is_drawn_at(self, values: Mapping[str, float]) -> bool:
        """Whether these are the values of its design parameters."""
        return self._drawn is values or self.variables == values

    def __getitem__(self, body: Any) -> Pose:
        name = getattr(body, "name", body)
        k = self._index.get(name) if isinstance(name, str) else None
        if k is None:
            if getattr(body, "is_ground", False) or name == "ground":
                return GROUND_POSE
            raise check.unknown(name, "body of this state", self.names)
        if name is not body:
            self._check_own("state[body]", body)
        row = self.coordinates[k]
        return Pose(row[:3], row[3:], None if self.velocities is None else self.velocities[k])

    def _check_own(self, what: str, body: Any) -> None:
        """ModelError for a body of another mechanism that differs from the one of that name; see check_own of
        :mod:`cardan.analysis.ownership`.  The mechanism is not known after pickling."""
        contents = getattr(self._index, "contents", None)
        own = None if contents is None else contents.bodies.get(body.name)
        if own is None or own is body or not hasattr(body, "owner"):
            return
        if own.owner is not body.owner and own.description() != body.description():
            raise ModelError(
                f"{what} was given {body!r} of another mechanism ({body.owner.name!r}); use that of "
                f"{own.owner.name!r}, or the name {body.name!r}"
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def turns(self) -> dict[str, int]:
        """Whole turns of each counted angle beyond (−π, π]; angles that are not finite are left out."""
        known = {key: angle for key, angle in self.angles.items() if math.isfinite(angle)}
        return {key: math.ceil(angle / (2.0 * math.pi) - 0.5) for key, angle in known.items()}

    @property
    def positions(self) -> FloatArray:
        """[m], shape (bodies, 3)."""
        return self.coordinates[:, :3]

    @property
    def quaternions(self) -> FloatArray:
        """Shape (bodies, 4)."""
        return self.coordinates[:, 3:]

    def coordinate(self, joint: Any, of: str | None = None) -> float:
        """A coordinate of a joint, ``state.coordinate("A")``: [m], or [rad]; of: which of a joint that has several.

        joint: a joint, its name, "joint.coordinate", or a coordinate.  Results, motions and simulations have the same
        method.
        """
        return float(self._coordinate("coordinate", joint, of).value(self))

    def rate(self, joint: Any, of: str | None = None) -> float:
        """The rate of a coordinate of a joint, [m/s] or [rad/s], as :meth:`coordinate`; the state has velocities."""
        return float(self._rigid("rate", joint, of).rate(self))

    def acceleration(self, joint: Any, of: str | None = None) -> float:
        """The acceleration of a coordinate of a joint, [m/s²] or [rad/s²]; the state has accelerations."""
        return float(self._rigid("acceleration", joint, of).acceleration(self))

    def _rigid(self, what: str, joint: Any, of: str | None) -> Any:
        """The coordinate, between rigid bodies: states have no rates of deformation."""
        found = self._coordinate(what, joint, of)
        for body in found.bodies:
            if getattr(body, "elastic", None) is not None:
                raise ModelError(
                    f"{what} was given {joint!r}, whose body {body.name!r} is flexible; a state has no rates "
                    "of deformation: use those of the simulation, sim.shape_rates"
                )
        return found

    def _coordinate(self, what: str, joint: Any, of: str | None) -> Any:
        """The coordinate that is asked for."""
        if isinstance(joint, str):
            joint = self._joint(joint)
        if hasattr(joint, "chosen"):
            return joint.chosen(of)
        if not hasattr(joint, "values_in_world"):
            raise ModelError(f"{what} was given {joint!r}; it must be a joint or a coordinate, such as 'A' or m['A']")
        if of not in (None, joint.name):
            raise ModelError(f"{joint!r} was given with of={of!r}; omit of=, since this is a coordinate already")
        return joint

    def _joint(self, key: str) -> Any:
        index = self._index
        return (index if isinstance(index, Index) else Index(index)).joint(key)

    def contact(self, name: Any) -> Any:
        """A contact of the mechanism, by name: point and normal in world, gap, parameters; see :class:`Contact`."""
        contacts = getattr(self._index, "contacts", {})
        key = getattr(name, "name", name)
        if key not in contacts:
            raise check.unknown(key, "contact of this state", contacts)
        return contacts[key].read(self)

    def table(self) -> dict[str, Any]:
        """The poses as columns by title, one row per body, for ``pandas.DataFrame(state.table())``."""
        titles = ("x [m]", "y [m]", "z [m]", "q w", "q x", "q y", "q z")
        return {"body": list(self.names), **dict(zip(titles, self.coordinates.T.copy(), strict=True))}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: time [s], poses, velocities if known, counted angles [rad], parameters."""
        rates = None if self.velocities is None else self.velocities.tolist()
        bodies = {
            name: {"position": row[:3], "quaternion": row[3:]} | ({} if rates is None else {"velocities": rates[k]})
            for k, (name, row) in enumerate(zip(self.names, self.coordinates.tolist(), strict=True))
        }
        return {"time": self.time, "bodies": bodies, "angles": dict(self.angles), "parameters": dict(self.variables)}

    def rows(self) -> Table:
        """The table of the poses, by rows."""
        return table_of(self.table(), 8)

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.rows())

    def moved(self, poses: Mapping[Any, Any]) -> State:
        """A copy with other poses of some bodies: ``{body or name: (position, quaternion)}`` or a Pose."""
        if not isinstance(poses, Mapping):
            raise ModelError(f"moved was given {poses!r}; it must be {{body: (position, quaternion)}}")
        coordinates = self.coordinates.copy()
        given: dict[str, list[float]] = {}
        for body, pose in poses.items():
            name = getattr(body, "name", body)
            if not isinstance(name, str) or name not in self._index:
                raise check.unknown(name, "movable body of this state", self.names)
            if name is not body:
                self._check_own("moved", body)
            if name in given:
                raise ModelError(f"body {name!r} is given twice, by name and as a body; give it once")
            given[name] = _row(name, pose)
        if given:
            coordinates[[self._index[name] for name in given]] = list(given.values())
        return self._with(coordinates, self.variables)

    def with_variables(self, values: Mapping[Any, float]) -> State:
        """The same poses, with other values of some parameters: ``{parameter or name: value}``.  Rates are dropped."""
        given = {getattr(key, "name", key): check.number(value, f"parameter {key!r}") for key, value in values.items()}
        for name in given:
            if name not in self.variables:
                raise check.unknown(name, "parameter of this state", self.variables)
        return self._with(self.coordinates, {**self.variables, **given})

    def _with(self, coordinates: FloatArray, variables: Mapping[str, float]) -> State:
        """Other poses or parameters, without rates."""
        return State(self.names, self._index, coordinates, angles=self.angles, time=self.time, variables=variables)

    def with_rates(self, velocities: FloatArray, accelerations: FloatArray | None = None) -> State:
        """The same poses, with velocities and accelerations, shape (bodies, 6) each: ṙ in world, ω in body axes."""
        return State(
            self.names,
            self._index,
            self.coordinates,
            velocities=self._checked_rates(velocities, "velocities"),
            accelerations=None if accelerations is None else self._checked_rates(accelerations, "accelerations"),
            angles=self.angles,
            time=self.time,
            variables=self.variables,
        )

    def with_time(self, time: float) -> State:
        """The same poses and rates at another time [s].  Drivers are not moved: their joints may be open then."""
        return State(
            self.names,
            self._index,
            self.coordinates,
            velocities=self.velocities,
            accelerations=self.accelerations,
            angles=self.angles,
            time=check.number(time, "the time of a state"),
            variables=self.variables,
        )

    def _checked_rates(self, rates: Any, what: str) -> FloatArray:
        """A copy of rates, shape (bodies, 6)."""
        try:
            found = np.array(rates, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"the {what} of a state are {rates!r}; they must be numbers") from None
        if found.shape != (len(self.names), 6):
            raise ModelError(f"the {what} of a state have shape {found.shape}; it must be {(len(self.names), 6)}")
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        if self.names != other.names or self.time != other.time or self.angles.keys() != other.angles.keys():
            return False
        if self.variables != other.variables:
            return False
        mine, theirs = ([state.angles[key] for key in self.angles] for state in (self, other))
        if not np.array_equal(mine, theirs, equal_nan=True):  # NaN, where a run broke, is the same in both
            return False
        if not np.array_equal(self.coordinates, other.coordinates, equal_nan=True):
            return False
        pairs = ((self.velocities, other.velocities), (self.accelerations, other.accelerations))
        return all(a is b if a is None or b is None else bool(np.array_equal(a, b)) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def __reduce__(self) -> tuple[Any, ...]:
        rates = self.velocities, self.accelerations
        contacts = dict(getattr(self._index, "contacts", {}))
        given = (self._angles, self.time, dict(self.variables), contacts)
        return _rebuild, (self.names, np.array(self.coordinates), *rates, *given)

    def __repr__(self) -> str:
        return f"<State of {len(self.names)} bodies at t = {self.time:g} s>"


def _rebuild(
    names: tuple[str, ...],
    coordinates: FloatArray,
    velocities: FloatArray | None,
    accelerations: FloatArray | None,
    angles: dict[str, float],
    time: float,
    variables: dict[str, float] | None = None,
    contacts: dict[str, Touch] | None = None,
) -> State:
    index = Index({name: k for k, name in enumerate(names)})
    index.contacts = contacts or {}
    return State(
        names,
        index,
        coordinates,
        velocities=velocities,
        accelerations=accelerations,
        angles=angles,
        time=time,
        variables=variables,
    )


def _row(name: str, pose: Any) -> list[float]:
    if isinstance(pose, Pose):
        position, quaternion = pose.position, pose.quaternion
    else:
        try:
            position, quaternion = pose
        except (TypeError, ValueError):
            raise ModelError(
                f"the pose of body {name!r} is {pose!r}; it must be a Pose or (position, quaternion)"
            ) from None
    return [
        *check.vector(position, f"the position of body {name!r}"),
        *orientation(quaternion, f"the orientation of body {name!r}"),
    ]
