"""What a mechanism contains, by name: look-up, checks of ownership, copies, descriptions."""

from __future__ import annotations

import copy as copying
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from cardan.dynamics.loads import Load
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.display import DEFAULT, Display
from cardan.system.formulas import Book, Condition, Formula, Parameter
from cardan.system.html import as_html, table_of
from cardan.system.parts import GROUND, Body, Direction, Frame, Point
from cardan.system.state import State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.mechanism.drawing import Elsewhere

    class Item(Body, Joint, Load):  # type: ignore[misc]  # never made
        """What ``m[name]`` may be: editors then offer the members of bodies, joints and loads."""

        a: Any
        b: Any


SETTABLE = ("gravity", "display", "poses")  # attributes that may be assigned to


class Items:
    """Bodies, joints, loads, rate rows and parameters: one set of names, checks of ownership, values."""

    if not TYPE_CHECKING:  # checkers know the attributes

        def __setattr__(self, name: str, value: Any) -> None:
            if not (name.startswith("_") or name in SETTABLE or hasattr(type(self), name)):
                raise check.unknown(name, f"attribute of mechanism {self.name!r} that can be set", SETTABLE)
            object.__setattr__(self, name, value)

    def __init__(self, name: str = "mechanism", *, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        self._name = check.name(name, "the mechanism")
        self._gravity = check.vector(gravity, f"the gravity of mechanism {name!r}")
        self._ground = Body(self, GROUND, mass=0.0, is_ground=True)
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, Joint] = {}
        self._loads: dict[str, Load] = {}
        self._display = DEFAULT
        self._rate_rows: dict[str, Joint] = {}
        self._system: System | None = None
        self._edits = 0
        self._serials = 0
        self.poses: dict[str, State] = {}
        self._source: Any = None  # of a mechanism that was read from a file: its units, names and expressions
        self._parameters: dict[str, Parameter] = {}
        self._book = Book()
        self._drawn: dict[str, float] = {}  # values of the parameters
        self._used: tuple[list[int], list[Condition]] | None = None  # nodes of the formulas in use, their conditions
        self._elsewhere: Elsewhere | None = None  # the system at the values of the last state that had others

    def _next_serial(self) -> int:
        """A number for a body or a counted angle, never given twice: packing knows them by it."""
        own = self.__dict__  # without the check of names, as in _touch
        own["_serials"] += 1
        return int(own["_serials"]) - 1

    def _item(self, name: str) -> Any:
        """The joint, body, load, rate row or parameter of that name, or None."""
        held = (self._joints, self._bodies, self._loads, self._rate_rows, self._parameters)
        return next((items[name] for items in held if name in items), None)

    def _has(self, name: str) -> bool:
        """Whether an item has that name."""
        if name in self._bodies or name in self._joints or name in self._loads:
            return True
        return name in self._rate_rows or name in self._parameters

    def _new_name(self, given: Any, what: str) -> str:
        name = check.name(given, what)
        if name == GROUND:
            raise ModelError(f"{what} cannot be named {name!r}: that is the fixed body")
        if self._has(name):
            kinds: dict[str, Mapping[str, Any]] = {
                "body": self._bodies,
                "joint": self._joints,
                "load": self._loads,
                "rate row": self._rate_rows,
                "parameter": self._parameters,
            }
            taken = next(word for word, items in kinds.items() if name in items)
            raise ModelError(f"{what} cannot be named {name!r}: there is a {taken} of that name; choose another")
        return name

    def _touch(self) -> None:
        """Discard the packed system; it is packed again when next needed.  Every edit calls this."""
        own = self.__dict__  # __setattr__, which checks names, would take a tenth of the time of adding a joint
        own["_system"] = own["_elsewhere"] = own["_used"] = None
        own["_edits"] += 1

    @property
    def name(self) -> str:
        """The name; a copy may have another."""
        return self._name

    @property
    def ground(self) -> Body:
        """The fixed body; its axes are the world's."""
        return self._ground

    @property
    def gravity(self) -> Triple:
        """Acceleration of gravity [m/s²] in world."""
        return self._gravity

    @gravity.setter
    def gravity(self, value: Any) -> None:
        self._gravity = check.vector(value, f"the gravity of mechanism {self.name!r}")

    @property
    def display(self) -> Display:
        """Units of lengths and angles in texts: ``m.display = cd.Display(length="inch")``; arrays are always SI."""
        return self._display

    @display.setter
    def display(self, value: Display) -> None:
        if not isinstance(value, Display):
            raise ModelError(f"the display is {value!r}; it must be a cd.Display, such as cd.Display(length='mm')")
        self._display = value
        self._touch()

    @property
    def bodies(self) -> Mapping[str, Body]:
        """The movable bodies by name, in the order they were made."""
        return dict(self._bodies)

    @property
    def joints(self) -> Mapping[str, Joint]:
        """The joints by name, in the order they were made."""
        return dict(self._joints)

    @property
    def loads(self) -> Mapping[str, Load]:
        """The loads by name, in the order they were made."""
        return dict(self._loads)

    @property
    def rate_rows(self) -> Mapping[str, Joint]:
        """The constraints of velocities alone by name, in the order they were made."""
        return dict(self._rate_rows)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The design parameters by name, in the order they were made."""
        return dict(self._parameters)

    def __getitem__(self, name: str) -> Item:
        found = self._item(name) if isinstance(name, str) else None
        if found is None:
            if name == GROUND:
                ground: Any = self._ground
                return ground  # type: ignore[no-any-return]
            raise check.unknown(name, "body, joint, load or parameter", self)
        made: Item = found
        return made

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self._item(name) is not None or name == GROUND)

    def __iter__(self) -> Iterator[str]:
        yield from self._bodies
        yield from self._joints
        yield from self._loads
        yield from self._rate_rows
        yield from self._parameters

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _check_body(self, what: str, body: Body) -> None:
        if body is self._ground or self._bodies.get(body.name) is body:
            return
        if body.owner is not self:
            other = getattr(body.owner, "name", "?")
            raise ModelError(
                f"{what} was given body {body.name!r} of another mechanism ({other!r}), or a frame, point or face on "
                f"it; use the {body.name!r} of {self.name!r}, m[{body.name!r}]"
            )
        raise ModelError(f"{what} was given body {body.name!r}, which was removed, or a frame, point or face on it")

    def _check_end(self, what: str, takes: str, end: Any) -> None:
        frame_only = takes == "frame"
        valid = "a frame (body.frame(…))" if frame_only else "a point or frame (body.point(…), body.frame(…))"
        if not isinstance(end, Frame if frame_only else Frame | Point):
            raise ModelError(f"{what} was given {end!r}; it must be {valid}")
        self._check_place(what, end)

    def _check_place(self, what: str, place: Coordinate | Frame | Point | Direction) -> None:
        """ModelError if a body of it is of another mechanism or was removed, or a parameter of its formulas was."""
        for body in place.bodies if isinstance(place, Coordinate) else (place.body,):
            self._check_body(what, body)
        if self._book.is_any_removed and any([self._book.is_removed(one.index) for one in formulas_of(place)]):
            name = "vector" if isinstance(place, Direction) else type(place).__name__.lower()
            told = repr(place) if isinstance(place, Coordinate) else f"a {name} on body {place.body.name!r}"
            raise ModelError(
                f"{what} was given {told} with a formula whose parameter was removed; make the {name} again, with "
                "other parameters or with numbers"
            )

    def _check_formula(self, what: str, formula: Formula) -> None:
        """ModelError where a formula is of another mechanism, or where a parameter of it was removed."""
        if formula.book is not self._book:
            raise ModelError(f"{what} was given {formula!r} of another mechanism; use a parameter of {self.name!r}")
        if self._book.is_removed(formula.index):
            raise ModelError(f"{what} was given {formula!r}, whose parameter was removed")

    def _check_own(self, what: str, item: Any) -> None:
        """ModelError if a body, joint or coordinate is of another mechanism, or was removed; names are not checked."""
        if isinstance(item, Body):
            self._check_body(what, item)
        elif isinstance(item, Joint) and self._joints.get(item.name, self._rate_rows.get(item.name)) is not item:
            raise ModelError(f"{what} was given {item!r}, which is not, or no longer, of mechanism {self.name!r}")
        elif isinstance(item, Coordinate):
            self._check_place(what, item)
            if item.joint and not self._is_current(item):
                raise ModelError(f"{what} was given {item!r}, but its joint was removed; take that of the new joint")

    def _check_start(self, what: str, start: Any) -> None:
        """ModelError if poses are given by bodies of another mechanism."""
        if isinstance(start, Mapping) and not isinstance(start, State):
            for body in start:
                self._check_own(what, body)

    def _coordinate(self, given: Any, kind: str) -> Coordinate:
        """The coordinate meant by a joint that has one of that kind ("" for any), or by a coordinate."""
        if isinstance(given, Coordinate):
            if kind and given.kind != kind:
                raise ModelError(f"{given!r} was given where {check.with_article(kind)} is needed")
            if given.joint and not self._is_current(given):
                raise ModelError(f"{given!r} was given, but its joint was removed; take that of the new joint")
            return given
        if not isinstance(given, Joint):
            way = f"; pass the joint itself, m[{given!r}]" if isinstance(given, str) and given in self._joints else ""
            raise ModelError(f"{given!r} was given; it must be a joint, or a coordinate made by cd.coordinate(…){way}")
        self._coordinate_owner(given)
        every = [given.of(word) for word in given.kind.coordinates]
        found = [coordinate for coordinate in every if not kind or coordinate.kind == kind]
        if len(found) != 1:
            words = ", ".join(repr(c.name) for c in found) if found else "none"
            wanted = check.with_article(kind) if kind else "a coordinate"
            way = "choose one with joint.of(name)" if found else "take one with cd.coordinate(frame_a, frame_b, of)"
            raise ModelError(f"joint {given.name!r} ({given.kind.name}) was given for {wanted}; it has {words}: {way}")
        return found[0]

    def _chosen(self, what: str, given: Any, of: str | None) -> Coordinate:
        """The coordinate of a joint by name, or its only one."""
        try:
            if of is not None and isinstance(given, Joint):
                self._coordinate_owner(given)
                return given.of(of)
            if of is not None and isinstance(given, Coordinate) and given.name != of:
                raise ModelError(f"{given!r} was given with of={of!r}; omit of=, since this is a coordinate already")
            return self._coordinate(given, "")
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None

    def _is_current(self, coordinate: Coordinate) -> bool:
        """Whether a coordinate's joint still exists; those of other mechanisms are refused later, by their bodies."""
        if coordinate.a.body.owner is not self:
            return True
        joint = self._joints.get(coordinate.joint)
        if joint is None or coordinate.name not in joint.kind.coordinates:
            return False
        found = joint.of(coordinate.name)
        return found.features == coordinate.features and found.counted is coordinate.counted

    def _coordinate_owner(self, joint: Joint) -> None:
        if self._joints.get(joint.name) is not joint:
            raise ModelError(f"{joint!r} is not, or no longer, a joint of mechanism {self.name!r}")

    def _by_key(self, key: str) -> Any:
        """A joint by its name, or a coordinate by "joint.coordinate"."""
        of, _, word = key.rpartition(".")
        return self._joints[of].of(word) if key not in self._joints and of in self._joints else self[key]

    def copy(self, name: str | None = None) -> Self:
        """An independent copy."""
        made = copying.deepcopy(self)
        if name is not None:
            made._name = check.name(name, "the mechanism")
        return made

    def __copy__(self) -> Self:
        return self.copy()

    def description(self) -> tuple[Any, ...]:
        """Everything that defines the mechanism, as plain values."""
        return (
            self.name,
            self._gravity,
            self._display,
            tuple(one.description() for one in self._ground.attachments),
            tuple(body.description() for body in self._bodies.values()),
            tuple(joint.description() for joint in self._joints.values()),
            tuple(load.description() for load in self._loads.values()),
            tuple(row.description() for row in self._rate_rows.values()),
            tuple((p.name, p.value, p.lower, p.upper, p.period) for p in self._parameters.values()),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Items):
            return NotImplemented
        return self.description() == other.description()

    __hash__ = None  # type: ignore[assignment]  # it can be edited

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_system": None, "_elsewhere": None}

    def table(self) -> dict[str, list[Any]]:
        """The joints as columns by title, one row each, for ``pandas.DataFrame(m.table())``."""
        items = list(self._joints.values())
        return {
            "joint": [joint.name for joint in items],
            "kind": [joint.kind.name for joint in items],
            "bodies": [" – ".join(body.name for body in joint.bodies) for joint in items],
            "equations": [joint.equations for joint in items],
            "coordinates": [", ".join(joint.kind.coordinates) for joint in items],
        }

    def _repr_html_(self) -> str:
        bodies = [(body.name, *body.position, body.fixed) for body in self._bodies.values()]
        return as_html(repr(self), (("body", "x [m]", "y [m]", "z [m]", "fixed"), bodies), table_of(self.table()))

    def __repr__(self) -> str:
        loads = f", {len(self._loads)} loads" if self._loads else ""
        rows = f", {len(self._rate_rows)} rate rows" if self._rate_rows else ""
        return f"<Mechanism {self.name!r}: {len(self._bodies)} bodies, {len(self._joints)} joints{loads}{rows}>"


def formulas_of(place: Coordinate | Frame | Point | Direction | Body) -> list[Formula]:
    """The formulas that a place was given, also those of axes that no equation reads."""
    if isinstance(place, Body):
        return []
    if isinstance(place, Coordinate):
        return [*formulas_of(place.a), *formulas_of(place.b)]
    if isinstance(place, Point):
        values: tuple[Any, ...] = place.position
    elif isinstance(place, Direction):
        values = place.given or ()
    else:
        values = (*place.origin, *(place.given_z or ()), *(place.given_x or ()))
    return [value for value in values if isinstance(value, Formula)]
