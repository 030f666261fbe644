"""The data of a mechanism: its items by name, their checks of names, and the edits of them.

An edit computes first, and is then made at once.  ``edits`` counts before and after a change, so that a drawing that
was made in between is not used again.  Evaluations read a :class:`~cardan.system.drawing.Drawing`; none assigns to the
model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cardan import joints
from cardan.dynamics.loads import Load
from cardan.errors import ModelError
from cardan.joints import Joint, JointKind, making, ownership, placing
from cardan.mechanism import contacts, parameters, removing
from cardan.system import check
from cardan.system.attachments import Attachment
from cardan.system.check import Triple
from cardan.system.display import DEFAULT, Display
from cardan.system.drawing import Contents, Drawing
from cardan.system.formulas import Book, Formula, Parameter, Values
from cardan.system.parts import GROUND, Body
from cardan.system.state import State
from cardan.system.system import System

FIXED = ".fixed"  # the joint of a fixed body has its name, and this


class Model:
    """Bodies, joints, loads, rate rows and parameters with one set of names; gravity [m/s²] and units of texts.

    ``owner``: the mechanism.  ``source``: of one that was read from a file, its units, names and expressions.
    """

    def __init__(self, owner: Any, name: str, gravity: Any) -> None:
        self.owner = owner
        self.name = check.name(name, "the mechanism")
        self.gravity: Triple = check.vector(gravity, f"the gravity of mechanism {name!r}")
        self.display: Display = DEFAULT
        self.ground = Body(self, GROUND, mass=0.0, is_ground=True)
        self.bodies: dict[str, Body] = {}
        self.joints: dict[str, Joint] = {}
        self.loads: dict[str, Load] = {}
        self.rate_rows: dict[str, Joint] = {}
        self.parameters: dict[str, Parameter] = {}
        self.book = Book()
        self.source: Any = None
        self.edits = 0
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
        """The joint, body, load, rate row or parameter of that name, or None."""
        held = (self.joints, self.bodies, self.loads, self.rate_rows, self.parameters)
        return next((items[name] for items in held if name in items), None)

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
        ):
            kinds: dict[str, Mapping[str, Any]] = {
                "body": self.bodies,
                "joint": self.joints,
                "load": self.loads,
                "rate row": self.rate_rows,
                "parameter": self.parameters,
            }
            taken = next(word for word, items in kinds.items() if name in items)
            raise ModelError(f"{what} cannot be named {name!r}: there is a {taken} of that name; choose another")
        return name

    def __iter__(self) -> Iterator[str]:
        yield from self.bodies
        yield from self.joints
        yield from self.loads
        yield from self.rate_rows
        yield from self.parameters

    def description(self) -> tuple[Any, ...]:
        """Everything that defines the mechanism, as plain values."""
        return (
            self.name,
            self.gravity,
            self.display,
            tuple(one.description() for one in self.ground.attachments),
            tuple(body.description() for body in self.bodies.values()),
            tuple(joint.description() for joint in self.joints.values()),
            tuple(load.description() for load in self.loads.values()),
            tuple(row.description() for row in self.rate_rows.values()),
            tuple((p.name, p.value, p.lower, p.upper, p.period) for p in self.parameters.values()),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_now": None}

    # -- evaluation ----------------------------------------------------------------------------------------------------

    @property
    def drawing(self) -> Drawing:
        """The mechanism as it is now."""
        now = self._now
        if now is not None:
            drawing = now[1]
            if drawing.contents.edits == self.edits and now[0] is self.book.values and drawing.gravity is self.gravity:
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
        last = None if self._now is None else self._now[1]
        is_edited = last is None or last.contents.edits != self.edits
        contents = Contents(self) if last is None or is_edited else last.contents
        nodes = self.book.values
        values = None
        if contents.parameters:
            known, drawn = self._drawn
            if known is not nodes:
                drawn = contents.book.drawn(nodes)
                self._drawn = nodes, drawn
            values = Values(contents.book, nodes, drawn, drawn)
        made = Drawing(contents, self.gravity, values)
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

    def keep(self, items: dict[str, Any], *made: Any) -> Any:
        """Keep new items, or replace those of their names; returns the last."""
        self.edits += 1
        items.update([(one.name, one) for one in made])
        self.edits += 1
        return made[-1]

    def assign(self, **changes: Any) -> None:
        """Replace attributes, all at once."""
        self.__dict__.update(changes, edits=self.edits + 1)

    def keep_body(self, body: Body, fixed: bool) -> Body:
        """Keep a new body, perhaps fixed where it is drawn."""
        self.keep(self.bodies, body)
        if fixed:
            try:
                self.fix(body, True)
            except BaseException:
                self.assign(bodies={name: one for name, one in self.bodies.items() if one is not body})
                raise
        return body

    def edit_body(self, body: Body, slots: Mapping[str, Any]) -> None:
        """Set attributes of a body; a fixed body stays fixed where it is drawn now."""
        self.edits += 1
        for slot, value in slots.items():
            setattr(body, slot, value)
        body._pack()
        self.edits += 1
        if f"{body.name}{FIXED}" in self.joints:
            self.fix(body, True)

    def fix(self, body: Body, fixed: bool) -> None:
        """Fix a body where it is drawn, by a joint that is named after it, or free it."""
        name = f"{body.name}{FIXED}"
        if fixed:
            if name not in self.joints:
                self.new_name(name, joints.fixed.label)
            frames = placing.frames(joints.fixed, self.ground, body, {})
            self.keep(self.joints, making.make(self, joints.fixed, name, frames, {}))
        elif name in self.joints:
            removing.remove(self, name, False)

    def add_joint(self, kind: JointKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Joint:
        """Add a joint of a kind, and the limit that belongs to it."""
        name = self.new_name(name, kind.label)
        made = making.make(self, kind, name, args, options)
        if "range" not in kind.parts or (limit := making.range_of(self, made)) is None:
            self.edits += 1
            self.joints[name] = made
            self.edits += 1
            return made
        self.new_name(limit.name, joints.limit.label)
        self.keep(self.joints, limit, made)
        return made

    def set_parameter(self, parameter: Parameter, value: Any) -> None:
        """Change the value of a parameter."""
        parameters.set_value(self, parameter, value)
