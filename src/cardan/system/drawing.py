"""A mechanism as it is at one moment, at values of its parameters: what analyses work on.

Edits make another drawing, and never change one.  So what an analysis computes belongs to the mechanism as it was when
the analysis was called, whatever a progress function or another thread edits in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from cardan.errors import ModelError
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.display import Display
from cardan.system.flexible import Elastic
from cardan.system.formulas import Book, Condition, Formula, Parameter, Rule, Values, drawn_at, formulas_in, plain_at
from cardan.system.parts import GROUND, Body, BodyRecord, CountedAngle, Direction, Point
from cardan.system.relations import Place
from cardan.system.state import State
from cardan.system.system import System

T = TypeVar("T")


class Contents:
    """The items of a mechanism between two edits.

    ``edits``: how often it had been edited.  ``records``: of the bodies.  ``book``: of the formulas, frozen.
    Joints, rate rows and loads are of layers above; they have a name, a kind and relations.  ``opening``: contacts that
    open, which are no equations of poses; ``closed``: the other joints.  ``inertias``: of the coordinates of joints
    that have one [kg m² or kg], by the names of the joints.  ``frictions``: laws of friction of joints, by their names.
    ``formed``: numbers of the bodies whose mass, centre or inertia has a formula.  ``flexible``: the elastic data of
    flexible bodies.
    """

    __slots__ = (
        *("_colliding", "_used", "bodies", "book", "closed", "collisions", "display", "edits", "flexible", "formed"),
        *("frictions", "ground", "inertias", "joints", "loads", "name", "opening", "parameters", "rate_rows"),
        *("records",),
    )

    def __init__(self, model: Any) -> None:
        self.edits: int = model.edits  # read first: contents that an edit changes meanwhile are not kept
        self.name: str = model.name
        self.ground: Body = model.ground
        self.joints: Mapping[str, Any] = model.joints.copy()
        self.opening: list[Any] = []
        self.closed: list[Any] = []
        for one in self.joints.values():
            (self.opening if ("unilateral", True) in one.parameters else self.closed).append(one)
        self.inertias: Mapping[str, float] = model.inertias.copy()
        self.frictions: Mapping[str, Any] = model.frictions.copy()
        self.rate_rows: Mapping[str, Any] = model.rate_rows.copy()
        self.loads: Mapping[str, Any] = model.loads.copy()
        self.bodies: Mapping[str, Body] = model.bodies.copy()
        self.flexible: list[Elastic] = []
        for body in self.bodies.values():
            if body._elastic is not None:
                self.flexible.append(body._elastic)
        self.records: list[BodyRecord] = [body._record for body in self.bodies.values()]
        self.formed: list[int] = [k for k, record in enumerate(self.records) if record.formed]
        self.parameters: Mapping[str, Parameter] = model.parameters.copy()
        self.display: Display = model.display
        self.book: Book = model.book.frozen() if model.book.names else model.book
        self.collisions: Mapping[str, Any] = model.collisions.copy()
        self._colliding: Any = None
        self._used: tuple[list[int], list[Condition | Rule]] | None = None

    def used(self) -> tuple[list[int], list[Condition | Rule]]:
        """Nodes of the formulas that items use, and their conditions."""
        found = self._used
        if found is None:
            nodes = [node for _, own in self.users() for node in own]
            rules = [rule for k in self.formed for rule in self.records[k].rules()]
            rules += [rule for load in self.loads.values() for rule in load._rules]
            inertias = [(name, value) for name, value in self.inertias.items() if isinstance(value, Formula)]
            rules += [Rule(value, check.positive, f"the inertia of joint {name!r}") for name, value in inertias]
            found = self._used = nodes, [*rules, *self.book.conditions_of(nodes)]
        return found

    def users(self) -> Iterator[tuple[str, list[int]]]:
        """What uses formulas in words, such as "revolute 'A'", and the nodes of these."""
        for item in self.items():
            yield f"{item.kind.name} {item.name!r}", nodes_of(item)
        for k in self.formed:
            yield f"body {self.records[k].name!r}", [node for rule in self.records[k].rules() for node in rule.nodes]
        for name, value in self.inertias.items():
            yield f"the inertia of joint {name!r}", [one.index for _, one in formulas_in(value)]

    def items(self) -> list[Any]:
        """Joints, rate rows and loads."""
        return [*self.joints.values(), *self.rate_rows.values(), *self.loads.values()]

    def user_of(self, node: int) -> str:
        """An item that reads a node, such as "revolute 'A'"."""
        return next((user for user, nodes in self.users() if node in nodes), "the gravity")

    def colliding(self, make: Callable[[], T]) -> T:
        """What must not overlap, which the layer above makes once."""
        if self._colliding is None:
            self._colliding = make()
        return self._colliding

    def check_bounds(self, values: Mapping[str, float]) -> None:
        """ModelError if a parameter has a value beyond its bounds."""
        for name, value in values.items():
            check_bounds(name, value, self.parameters[name].lower, self.parameters[name].upper)

    def is_fixed(self, body: str) -> bool:
        """Whether a body is fixed where it is drawn."""
        return f"{body}.fixed" in self.joints

    def parameter_name(self, item: Any) -> str:
        """The name of a parameter, or the name itself, if it is of this mechanism."""
        name = item.name if isinstance(item, Parameter) else item
        if not isinstance(name, str) or name not in self.parameters:
            raise check.unknown(name, "parameter", self.parameters)
        if isinstance(item, Parameter) and self.parameters[name] is not item:
            raise ModelError(f"{item!r} is of another mechanism, not of {self.name!r}, or was removed")
        return name

    def has(self, key: str) -> bool:
        """Whether an item has that name."""
        held = (self.joints, self.bodies, self.loads, self.rate_rows, self.parameters, self.collisions)
        return key == self.ground.name or any([key in items for items in held])

    def body(self, name: str) -> Body:
        """A body by its name, also the ground."""
        return self.ground if name == GROUND else self.bodies[name]

    def by_key(self, key: str) -> Any:
        """A joint by its name, or a coordinate by "joint.coordinate"; else the item of that name, if there is one."""
        of, _, word = key.rpartition(".")
        if key not in self.joints and of in self.joints:
            return self.joints[of].of(word)
        return self.item(key)

    def item(self, key: str) -> Any:
        """The joint, body, load, rate row, parameter or collisions of that name."""
        for items in (self.joints, self.bodies, self.loads, self.rate_rows, self.parameters, self.collisions):
            if key in items:
                return items[key]
        if key == self.ground.name:
            return self.ground
        names = [*self.bodies, *self.joints, *self.loads, *self.rate_rows, *self.parameters]
        raise check.unknown(key, "body, joint, load or parameter", names)


class Drawing:
    """The contents of a mechanism, its gravity [m/s²], and its formulas at values of the parameters (None: no
    parameters).  The packed system is made when it is first needed.

    ``records``, ``inertias``: as in the contents, with numbers in place of formulas; ``given_gravity`` may have these.
    """

    __slots__ = ("_base", "_other", "_system", "contents", "given_gravity", "gravity", "inertias", "records", "values")

    def __init__(
        self, contents: Contents, gravity: Triple, values: Values | None = None, base: Drawing | None = None
    ) -> None:
        """base: a drawing with the same contents at other values, from whose system that of this one is made."""
        self.contents = contents
        self.given_gravity = gravity
        self.values = values
        self.gravity, self.records, self.inertias = gravity, contents.records, contents.inertias
        if values is not None:
            nodes = values.nodes
            self.gravity = plain_at(gravity, nodes)  # type: ignore[assignment]  # three numbers
            if contents.formed:
                self.records = [record.drawn(nodes) if record.formed else record for record in contents.records]
            if contents.inertias:
                self.inertias = {name: drawn_at(value, nodes) for name, value in contents.inertias.items()}
        self._base = base
        self._system: System | None = None
        self._other: Drawing | None = None  # at the values of the last state that had others

    def reuse(self, last: Drawing) -> None:
        """Use the systems of a drawing with the same contents, if it has some."""
        self._other = last._other
        if self.drawn is last.drawn or self.values is None:
            self._system = last._system
        elif last._system is not None:
            self._base = last

    @property
    def drawn(self) -> Mapping[str, float]:
        """Values of the parameters, by name."""
        return {} if self.values is None else self.values.drawn

    @property
    def nodes(self) -> list[float] | None:
        """Values of all nodes of the formulas; None without parameters."""
        return None if self.values is None else self.values.nodes

    def used(self) -> tuple[list[int], list[Condition | Rule]]:
        """Nodes of the formulas in use, and their conditions."""
        nodes, conditions = self.contents.used()
        rule = Rule(self.given_gravity, check.vector, f"the gravity of mechanism {self.contents.name!r}")
        return (nodes, conditions) if not rule.nodes else ([*nodes, *rule.nodes], [*conditions, rule])

    def evaluated(self, drawn: Mapping[str, float]) -> list[float]:
        """Values of all nodes of the formulas; ModelError where a value, or a formula in use, is not valid."""
        c = self.contents
        c.check_bounds(drawn)
        values = c.book.evaluate(drawn)
        c.book.check(values, *self.used(), c.user_of)
        return values

    @property
    def system(self) -> System:
        """The packed system."""
        found = self._system
        if found is None:
            base, values = self._base, self.values
            found = self._system = self.packed() if base is None or values is None else base.system.redrawn(values)
            self._base = None
        return found

    def packed(self, references: Any = None, also: Iterable[Any] = ()) -> System:
        """A new system, with the reference frames of its bodies where they are given; see :class:`cardan.System`.

        also: constraints besides the joints.
        """
        c = self.contents
        if not c.records:
            raise ModelError(f"mechanism {c.name!r} has no bodies; add one with m.body(name)")
        rows = list(c.rate_rows.values()) if c.rate_rows else ()
        also = list(also)
        joints = [*c.closed, *also]
        angles = self.counted_angles([joint for joint in also if joint in c.opening] if c.opening else ())
        made = System(self.records, joints, angles, references, rows, self.values, c.display)
        made.index.contents = c
        return made

    def counted_angles(self, also: Iterable[Any] = ()) -> list[CountedAngle]:
        """Angles whose whole turns are counted: those of all joints, if any relation reads one; also: other items."""
        c = self.contents
        items = [*c.closed, *c.rate_rows.values(), *also]
        needed = [counted for item in items for relation in item.relations for counted in relation.counted_angles]
        if not needed:
            return []
        found = {counted: None for joint in c.joints.values() for _, counted in joint.angles}
        return [*found, *(counted for counted in dict.fromkeys(needed) if counted not in found)]

    def places(self) -> dict[str, list[tuple[Place, ...]]]:
        """By the name of each joint and rate row, of each end its frame, or both frames of a coordinate."""
        nodes = self.nodes
        found: dict[str, list[tuple[Place, ...]]] = {}
        for name, joint in {**self.contents.joints, **self.contents.rate_rows}.items():
            by_end: list[Any] = [(end.a, end.b) if hasattr(end, "a") else (end,) for end in joint.ends]
            of_ends = [tuple([Place.of(place) for place in places]) for places in by_end]
            found[name] = of_ends if nodes is None else [tuple([p.drawn(nodes) for p in own]) for own in of_ends]
        return found

    def joint_points(self) -> dict[str, list[tuple[float, ...]]]:
        """Where each body is joined [m], in its axes, by its name."""
        nodes = self.nodes
        found: dict[str, list[tuple[float, ...]]] = {}
        for joint in self.contents.joints.values():
            for end in joint.ends:
                for place in (end.a, end.b) if hasattr(end, "a") else (end,):  # of a coordinate
                    if not isinstance(place, Direction):
                        position = place.position if isinstance(place, Point) else place.origin
                        found.setdefault(place.body._name, []).append(plain_at(position, nodes))
        return found

    def at(self, state: Any) -> Drawing:
        """The drawing at the values of a state; itself for anything else."""
        own = self.values
        if own is None or not isinstance(state, State) or state.is_drawn_at(own.drawn):
            return self
        drawn = {name: state.variables.get(name, value) for name, value in own.drawn.items()}
        try:
            return self.at_values(drawn)
        except ModelError as error:
            raise ModelError(f"the parameters of the state are not valid: {error}") from None

    def at_values(self, drawn: Mapping[str, float]) -> Drawing:
        """The drawing at values of all parameters; ModelError where they are not valid."""
        own, other = self.values, self._other
        if own is None or drawn == own.drawn:
            return self
        if other is None or other.drawn != drawn or not other._belongs_to(self):
            values = Values(own.book, self.evaluated(drawn), drawn, own.near)
            other = self._other = Drawing(self.contents, self.given_gravity, values, self)
        return other

    def _belongs_to(self, drawing: Drawing) -> bool:
        """Whether this is another drawing at values of its own."""
        assert self.values is not None and drawing.values is not None
        is_near = self.values.near is drawing.values.near or not any(drawing.contents.book.periods)
        return is_near and self.given_gravity is drawing.given_gravity

    def with_free(self, free: Iterable[str | Parameter]) -> System:
        """The system in which some parameters are unknowns."""
        if not free:
            return self.system
        if isinstance(free, str | Parameter):
            raise ModelError(f"free is {free!r}; it must be a list of parameters or their names")
        names = tuple(dict.fromkeys([self.contents.parameter_name(item) for item in free]))
        if names and self.values is not None:
            for name in names:
                self.contents.book.check_period(name, self.used()[0], self.values.nodes)
        return self.system.with_variables(names) if names else self.system

    def checked_state(self, what: str, state: State | None) -> State:
        """The state, or the drawn one where none is given; ModelError if it is not of this mechanism."""
        if state is None:
            return self.system.state()
        if not isinstance(state, State) or state.names != self.system.names:
            raise ModelError(f"{what} was given {state!r}; it must be a State of this mechanism, such as result.state")
        return state

    def values_now(self) -> Values | None:
        """The formulas with those that were made since, at the same values of the parameters."""
        own = self.values
        if own is None or len(own.book.values) == len(own.book.graph.nodes):
            return own
        book = next(iter(self.contents.parameters.values())).book.frozen()
        return Values(book, book.evaluate({**book.drawn(), **own.drawn}), own.drawn, own.near)

    def check_values(self, given: Mapping[str, Any], tolerances: Mapping[str, float]) -> None:
        """ModelError where parameters have a value beyond their bounds, or one that a formula does not allow.

        given: shape (n,) each.  tolerances: by which the values were drawn; such samples may be beyond the bounds.
        """
        if not given:
            return
        c, bounded = self.contents, not tolerances
        counts = {len(numbers): name for name, numbers in given.items()}
        if len(counts) > 1:
            told = ", ".join(f"{count} for {name!r}" for count, name in counts.items())
            raise ModelError(f"values are for different numbers of starts: {told}; give as many for each parameter")
        valid = c.book.are_valid({**self.drawn, **given}, *self.used())
        for name, numbers in given.items():
            parameter = c.parameters[name]
            if bounded:
                valid = valid & (parameter.lower <= numbers) & (numbers <= parameter.upper)
        if not np.all(valid):
            k = int(np.flatnonzero(~valid)[0])
            own = {name: float(numbers[k]) for name, numbers in given.items()}
            try:
                c.check_bounds(own if bounded else {})
                c.book.check(c.book.evaluate({**self.drawn, **own}), *self.used(), c.user_of)
            except ModelError as error:
                if bounded:
                    raise ModelError(f"the parameters of start {k} are not valid: {error}") from None
                told = ", ".join(f"{name} = {own[name]:g} (tolerance ±{t:g})" for name, t in tolerances.items())
                raise ModelError(
                    f"the tolerances lead to parameters that are not valid: in sample {k}, with {told}, {error}; give "
                    "smaller tolerances"
                ) from None

    def with_joint(self, joint: Any) -> Drawing:
        """The drawing with one more joint."""
        made = Contents.__new__(Contents)
        for slot in Contents.__slots__:
            setattr(made, slot, getattr(self.contents, slot))
        made.joints, made._used = {**self.contents.joints, joint.name: joint}, None
        made.closed = [*self.contents.closed, joint]
        return Drawing(made, self.given_gravity, self.values)

    def __deepcopy__(self, memo: Any) -> Drawing:
        return self  # nothing changes it

    def __reduce__(self) -> tuple[Any, ...]:
        return Drawing, (self.contents, self.given_gravity, self.values)


def check_bounds(name: str, value: float, lower: float, upper: float) -> None:
    """ModelError if the value of a parameter is beyond its bounds."""
    if not lower <= value <= upper:
        raise ModelError(
            f"the value of parameter {name!r} is {value}; it must lie within {lower} and {upper}, its bounds"
        )


def nodes_of(item: Any) -> list[int]:
    """Nodes of the formulas of a joint or load."""
    found = [node for relation in item.relations for node in relation.nodes]
    if not hasattr(item, "action"):
        return found
    return [*found, *[one.index for _, numbers in item.action.numbers() for _, one in formulas_in(numbers)]]
