"""The data of a mechanism: its items by name, their checks of names, and the edits of them.

An edit computes first, and is then made at once: an exception, or Ctrl-C at any instruction, leaves the model as before
or as after.  An edit of several steps is made within :meth:`Model.as_one`.  ``lock`` lets one thread at a time edit the
items or copy them; ``edits`` counts the changes, so that a drawing made before them is not used again.  Evaluations
read a :class:`~cardan.system.drawing.Drawing`; none assigns to the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from itertools import chain, count
from threading import RLock
from typing import TYPE_CHECKING, Any

from cardan import joints
from cardan.dynamics.loads import Load
from cardan.errors import ModelError
from cardan.joints import Joint, JointKind, making, ownership, placing
from cardan.joints.friction import JointFriction, friction_of
from cardan.mechanism import contacts, parameters, removing
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.display import DEFAULT, Display
from cardan.system.drawing import Contents, Drawing
from cardan.system.formulas import Book, Formula, Parameter, Values, formulas_in, told
from cardan.system.parts import GROUND, Body
from cardan.system.state import State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.system.attachments import Attachment  # it loads all shapes, and the geometry
    from cardan.system.flexible import Elastic

FIXED = ".fixed"  # the joint of a fixed body has its name, and this


class Model:
    """Bodies, joints, loads, rate rows, parameters, collisions with one set of names; gravity [m/s²], units of texts.

    ``owner``: the mechanism.  ``source``: of one that was read from a file, its units, names and expressions.
    """

    def __init__(self, owner: Any, name: str, gravity: Any) -> None:
        self.owner = owner
        self.name = check.name(name, "the mechanism")
        self.book = Book()
        self.gravity: Triple
        self.set_gravity(gravity)
        self.display: Display = DEFAULT
        self.ground = Body(self, GROUND, mass=0.0, is_ground=True)
        self.bodies: dict[str, Body] = {}
        self.joints: dict[str, Joint] = {}
        self.inertias: dict[str, float] = {}  # of joints, by their names
        self.frictions: dict[str, JointFriction] = {}  # likewise
        self.loads: dict[str, Load] = {}
        self.rate_rows: dict[str, Joint] = {}
        self.collisions: dict[str, Any] = {}
        self.parameters: dict[str, Parameter] = {}
        self.source: Any = None
        self.edits = 0
        self.lock = RLock()
        self._serials = 0
        # the last drawing, and the values of all formulas and of the parameters, each with the list of values it is of
        self._now: tuple[list[float], Drawing] | None = None
        self._drawn: tuple[list[float], dict[str, float]] = self.book.values, {}

    # -- names ---------------------------------------------------------------------------------------------------------

    def next_serial(self) -> int:
        """A number for a body or a counted angle, never given twice: packing knows them by it."""
        self._serials += 1
        return self._serials - 1

    def item(self, name: str) -> Any:
        """The joint, body, load, rate row, parameter or collisions of that name, or None."""
        held = (self.joints, self.bodies, self.loads, self.rate_rows, self.parameters, self.collisions)
        return next((found for items in held if (found := items.get(name)) is not None), None)

    def body(self, name: str) -> Body:
        """A body by its name, also the ground."""
        return self.ground if name == GROUND else self.bodies[name]

    def new_name(self, given: Any, what: str) -> str:
        """A name that no item has; what: is to have it, such as "a body"."""
        name = check.name(given, what)
        if name == GROUND:
            raise ModelError(f"{what} cannot be named {name!r}: that is the fixed body")
        if (
            name in self.bodies
            or name in self.joints
            or name in self.loads
            or name in self.rate_rows
            or name in self.parameters
            or name in self.collisions
        ):
            kinds: dict[str, Mapping[str, Any]] = {
                "body": self.bodies,
                "joint": self.joints,
                "load": self.loads,
                "rate row": self.rate_rows,
                "parameter": self.parameters,
                "set of collisions": self.collisions,
            }
            taken = next(word for word, items in kinds.items() if name in items)
            free = self._free_name(name, what.rpartition(" ")[2], taken)
            raise ModelError(
                f"{what} cannot be named {name!r}: there is a {taken} of that name; choose another, such as {free!r}"
            )
        return name

    def _free_name(self, name: str, word: str, taken: str) -> str:
        """A name like one that is taken, which no item has.  word: what is to have it; taken: what has it."""
        numbered = (f"{name}_{k}" for k in count(2))
        wanted = numbered if word == taken else chain([f"{name}_{word}"], numbered)
        return next(one for one in wanted if self.item(one) is None and one != GROUND)

    def __iter__(self) -> Iterator[str]:
        with self.lock:
            names = [*self.bodies, *self.joints, *self.loads, *self.rate_rows, *self.parameters, *self.collisions]
        return iter(names)

    def description(self) -> tuple[Any, ...]:
        """Everything that defines the mechanism, as plain values."""
        with self.lock:
            return (
                self.name,
                told(self.gravity),
                self.display,
                tuple(one.description() for one in self.ground.attachments),
                tuple(body.description() for body in self.bodies.values()),
                tuple(joint.description() for joint in self.joints.values()),
                tuple(sorted((name, told(value)) for name, value in self.inertias.items())),
                tuple([(name, self.frictions[name]) for name in sorted(self.frictions)]),
                tuple(load.description() for load in self.loads.values()),
                tuple(row.description() for row in self.rate_rows.values()),
                tuple((p.name, p.value, p.lower, p.upper, p.period) for p in self.parameters.values()),
                tuple(one.description() for one in self.collisions.values()),
            )

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return {**self.__dict__, "_now": None, "lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=RLock())

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        made = memo[id(self)] = Model.__new__(Model)
        with self.lock:
            made.__setstate__(deepcopy(self.__getstate__(), memo))
        return made

    # -- evaluation ----------------------------------------------------------------------------------------------------

    @property
    def drawing(self) -> Drawing:
        """The mechanism as it is now."""
        now = self._now
        if now is not None:
            drawing = now[1]
            is_current = drawing.contents.edits == self.edits and now[0] is self.book.values
            if is_current and drawing.given_gravity is self.gravity:
                return drawing
        return self._draw()

    @property
    def contents(self) -> Contents:
        """The items as they are now."""
        now = self._now
        return now[1].contents if now is not None and now[1].contents.edits == self.edits else self.drawing.contents

    @property
    def drawn(self) -> Mapping[str, float]:
        """The values of the parameters as they are now, by name."""
        known, drawn = self._drawn
        return drawn if known is self.book.values else self.drawing.drawn

    def _draw(self) -> Drawing:
        """A new drawing; with the system of the last one, if only gravity or values of parameters have changed."""
        with self.lock:  # items, values and gravity of one moment
            last = None if self._now is None else self._now[1]
            is_edited = last is None or last.contents.edits != self.edits
            contents = Contents(self) if last is None or is_edited else last.contents
            nodes, gravity = self.book.values, self.gravity
        values = None
        if contents.parameters:
            known, drawn = self._drawn
            if known is not nodes:
                drawn = contents.book.drawn(nodes)
                self._drawn = nodes, drawn
            values = Values(contents.book, nodes, drawn, drawn)
        made = Drawing(contents, gravity, values)
        if last is not None and not is_edited:
            made.reuse(last)
        self._now = nodes, made
        return made

    def begin(self, what: str, start: Any) -> Drawing:
        """The mechanism as it is now, at the values of the start of an analysis, whose bodies are checked."""
        drawing = self.drawing
        if start is None:
            return drawing
        if not isinstance(start, State):
            ownership.check_start(drawing.contents, what, start)
        return drawing.at(start)

    def system_at(self, values: Mapping[str, float]) -> System:
        """The packed system at values of some parameters, the others as drawn."""
        drawing = self.drawing
        return drawing.at_values({**drawing.drawn, **values}).system

    def check_formula(self, what: str, formula: Formula) -> None:
        """ModelError where a formula is of another mechanism, or where a parameter of it was removed."""
        ownership.check_formula(self, what, formula)

    def contacts_on(self, face: Attachment) -> list[Joint]:
        """The contacts, points on curves or surfaces, and paths that use a face."""
        return contacts.on_face(self, face)

    # -- edits ---------------------------------------------------------------------------------------------------------

    def keep(self, word: str, *made: Any) -> Any:
        """Keep new items, or replace those of their names; returns the last.  word: "bodies", "joints", …"""
        pairs = [(one.name, one) for one in made]
        with self.lock:
            self.edits += 1
            getattr(self, word).update(pairs)
            self.edits += 1
        return made[-1]

    def assign(self, **changes: Any) -> None:
        """Replace attributes, all at once."""
        with self.lock:
            self.__dict__.update(changes, edits=self.edits + 1)

    @contextmanager
    def as_one(self, *bodies: Body, items: Iterable[str] = removing.HELD) -> Iterator[None]:
        """A context of several edits that are made as one: if one of them fails or is interrupted, none is made.

        bodies: those that are edited.  items: the words of the items that are.
        """
        with self.lock:
            kept = {word: getattr(self, word).copy() for word in items}
            drawn, book = self._drawn, self.book.snapshot()
            slots = [(body, body._snapshot()) for body in bodies]
            try:
                yield
            except BaseException:
                for body, values in slots:
                    body._restore(values)
                self.book.restore(book)
                self.assign(**kept, _drawn=drawn)
                raise

    def keep_body(self, body: Body, fixed: bool) -> Body:
        """Keep a new body, perhaps fixed where it is drawn."""
        if not fixed:
            self.keep("bodies", body)
            return body
        with self.as_one(items=("bodies", "joints")):
            self.keep("bodies", body)
            self.fix(body, True)
        return body

    def edit_body(self, body: Body, slots: Mapping[str, Any]) -> None:
        """Set attributes of a body; a fixed body stays fixed where it is drawn now."""
        with self.lock:
            if f"{body.name}{FIXED}" in self.joints:
                with self.as_one(body, items=("joints",)):
                    self._set(body, slots)
                    self.fix(body, True)
            else:
                self._set(body, slots)

    def _set(self, body: Body, slots: Mapping[str, Any]) -> None:
        """Set attributes of a body, all of them or none."""
        kept = [(slot, getattr(body, slot)) for slot in (*slots, "_record")]
        try:
            self.edits += 1
            for slot, value in slots.items():
                setattr(body, slot, value)
            body._pack()
            self.edits += 1
        except BaseException:
            for slot, value in kept:
                setattr(body, slot, value)
            raise

    def fix(self, body: Body, fixed: bool) -> None:
        """Fix a body where it is drawn, by a joint that is named after it, or free it."""
        name = f"{body.name}{FIXED}"
        with self.lock:
            if fixed:
                if name not in self.joints:
                    self.new_name(name, joints.fixed.label)
                frames = placing.frames(joints.fixed, self.ground, body, {})
                self.keep("joints", making.make(self, joints.fixed, name, frames, {}))
            elif name in self.joints:
                removing.remove(self, name, False)

    def add_joint(self, kind: JointKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Joint:
        """Add a joint of a kind, and the limit that belongs to it."""
        name = self.new_name(name, kind.label)
        friction = friction_of(making.label(kind, name), kind.name, options)
        try:
            made = making.make(self, kind, name, args, options)
            limit = making.range_of(self, made) if "range" in kind.parts else None
            if limit is None and friction is not None:
                with self.as_one(items=("joints", "frictions")):
                    self.keep("joints", made)
                    self.assign(frictions={**self.frictions, name: friction})
            elif limit is None:
                self.keep("joints", made)
            else:
                self.new_name(limit.name, joints.limit.label)
                self.keep("joints", limit, made)
        except BaseException:
            if name not in self.joints:  # conditions of its formulas
                self.book.forget({making.label(kind, name)})
            raise
        return made

    def make_flexible(self, body: Body, modes: Any) -> Elastic:
        """See :meth:`cardan.Body.flexible`."""
        with self.lock:
            return parameters.make_flexible(self, body, modes)

    def set_joint_inertia(self, name: str, value: Any) -> None:
        """Set the inertia of the coordinate of a joint [kg m² or kg]; zero removes it."""
        with self.lock:
            if isinstance(value, Formula):
                self.check_formula(f"the inertia of joint {name!r}", value)
            others = {key: one for key, one in self.inertias.items() if key != name}
            is_none = not isinstance(value, Formula) and value == 0.0
            self.assign(inertias=others if is_none else {**others, name: value})

    def set_gravity(self, value: Any) -> None:
        """Set the gravity [m/s²], of numbers or formulas."""
        what = f"the gravity of mechanism {self.name!r}"
        found = check.place(value, what) if formulas_in(value) else check.vector(value, what)
        for _, formula in formulas_in(found):
            self.check_formula(what, formula)
        self.gravity = found

    def set_parameter(self, parameter: Parameter, value: Any) -> None:
        """Change the value of a parameter."""
        with self.lock:
            parameters.set_value(self, parameter, value)
