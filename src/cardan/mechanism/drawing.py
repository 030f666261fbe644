"""Design parameters, and the packed system of the drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from cardan.dynamics.loads import Load
from cardan.errors import ModelError
from cardan.joints import Joint
from cardan.lazy import LazyModule
from cardan.mechanism.items import Items, formulas_of
from cardan.system import check
from cardan.system.formulas import Book, Condition, Parameter, bindings
from cardan.system.parts import CountedAngle
from cardan.system.state import State
from cardan.system.system import System

_forward = LazyModule("cardan.joints.forward")


class Drawing(Items):
    """The values of the parameters, and the packed system at these values."""

    def parameter(
        self, name: str, value: Any, *, lower: Any = None, upper: Any = None, period: Any = None
    ) -> Parameter:
        """Add a design parameter, which can replace any number of a joint, point, frame or vector.

        ``L = m.parameter("L", 1.0); crank.point((L, 0, 0)); m.distance("rod", a, b, 2 * L + 0.1)``.  It is held at its
        value: the results are those of the plain number.  ``L.value = 1.2`` changes the drawing.
        lower, upper: bounds that ``assemble(free=…)`` keeps, and that a new value must be within.
        period: values that differ by it are the same, as 2π of an angle that only appears in ``cd.sin`` and ``cd.cos``;
        ``assemble(free=…)`` then returns the value within half a period of the one that was set.
        """
        name = self._new_name(name, "a parameter")
        start = check.number(value, f"the value of parameter {name!r}")
        low = -math.inf if lower is None else check.number(lower, f"lower of parameter {name!r}")
        high = math.inf if upper is None else check.number(upper, f"upper of parameter {name!r}")
        if not low < high:
            raise ModelError(f"lower of parameter {name!r} is {low} and upper is {high}; lower must be below upper")
        _check_bounds(name, start, low, high)
        own = 0.0 if period is None else check.positive(period, f"period of parameter {name!r}")
        if own and (lower is not None or upper is not None):
            raise ModelError(f"parameter {name!r} was given bounds and a period; give one of them")
        number = self._book.add(name, start, (low, high), own)
        made = Parameter(self, name, self._book, self._book.nodes[number])
        self._parameters[name] = made
        self._drawn = self._book.drawn()
        self._touch()
        return made

    def _set_parameter(self, parameter: Parameter, value: Any) -> None:
        """Change a drawn value; the packed system is measured again when it is next needed."""
        name = parameter.name
        if self._parameters.get(name) is not parameter:
            raise ModelError(f"parameter {name!r} was removed from mechanism {self.name!r}; it has no value to set")
        number = check.number(value, f"the value of parameter {name!r}")
        _check_bounds(name, number, parameter.lower, parameter.upper)
        self._redraw({**self._drawn, name: number})

    def _redraw(self, drawn: dict[str, float]) -> None:
        book = self._book
        values = book.evaluate(drawn)
        book.check(values, *self._formulas(), self._user_of)
        book.values, self._drawn = values, drawn
        book.periods = [(period, values[node]) for (period, _), node in zip(book.periods, book.nodes, strict=True)]

    def _user_of(self, node: int) -> str:
        """A joint, rate row or load that reads a node, such as "revolute 'A'"."""
        items: list[Joint | Load] = [*self._joints.values(), *self._rate_rows.values(), *self._loads.values()]
        return next(f"{item.kind.name} {item.name!r}" for item in items if node in _nodes_of(item))

    def _formulas(self) -> tuple[list[int], list[Condition]]:
        """Nodes of the formulas that joints and loads use, and their conditions; kept until the next edit."""
        if self._used is None:
            items: list[Joint | Load] = [*self._joints.values(), *self._rate_rows.values(), *self._loads.values()]
            nodes = [node for item in items for node in _nodes_of(item)]
            self._used = nodes, self._book.conditions_of(nodes)
        return self._used

    def _check_all_bounds(self, values: Mapping[str, float]) -> None:
        """ModelError if a parameter has a value beyond its bounds."""
        for name, value in values.items():
            _check_bounds(name, value, self._parameters[name].lower, self._parameters[name].upper)

    def _values_of(self, state: State) -> dict[str, float]:
        """Values of all parameters in a state: the drawn one of a parameter that the state does not have."""
        return {name: state.variables.get(name, value) for name, value in self._drawn.items()}

    def _users(self, parameter: str) -> list[Joint | Load]:
        """Joints, rate rows and loads with a formula of that parameter."""
        items: list[Joint | Load] = [*self._joints.values(), *self._rate_rows.values(), *self._loads.values()]
        places = [[formula.index for end in item.ends for formula in formulas_of(end)] for item in items]
        every = [[*_nodes_of(item), *nodes] for item, nodes in zip(items, places, strict=True)]
        return [item for item, nodes in zip(items, every, strict=True) if parameter in self._book.parameters_of(nodes)]

    def _own_book(self) -> tuple[Book, dict[str, float]] | None:
        """The formulas and the drawn values, if there are parameters."""
        return (self._book, self._drawn) if self._parameters else None

    def _parameter_name(self, item: Any) -> str:
        name = item.name if isinstance(item, Parameter) else item
        if not isinstance(name, str) or name not in self._parameters:
            raise check.unknown(name, "parameter", self._parameters)
        if isinstance(item, Parameter) and self._parameters[name] is not item:
            raise ModelError(f"{item!r} is of another mechanism, not of {self.name!r}, or was removed")
        return name

    def _check_values(self, given: Mapping[str, Any], tolerances: Mapping[str, float]) -> None:
        """ModelError where parameters have a value beyond their bounds, or one that a formula does not allow.

        tolerances: by which the values were drawn; samples of tolerances may be beyond the bounds.
        """
        if not given:
            return
        bounded = not tolerances
        counts = {len(numbers): name for name, numbers in given.items()}
        if len(counts) > 1:
            told = ", ".join(f"{count} for {name!r}" for count, name in counts.items())
            raise ModelError(f"values are for different numbers of starts: {told}; give as many for each parameter")
        valid = self._book.are_valid({**self._drawn, **given}, self._formulas()[0])
        for name, numbers in given.items():
            parameter = self._parameters[name]
            if bounded:
                valid = valid & (parameter.lower <= numbers) & (numbers <= parameter.upper)
        if not np.all(valid):
            k = int(np.flatnonzero(~valid)[0])
            own = {name: float(numbers[k]) for name, numbers in given.items()}
            try:
                self._check_all_bounds(own if bounded else {})
                self._book.check(self._book.evaluate({**self._drawn, **own}), *self._formulas(), self._user_of)
            except ModelError as error:
                if bounded:
                    raise ModelError(f"the parameters of start {k} are not valid: {error}") from None
                told = ", ".join(f"{name} = {own[name]:g} (tolerance ±{t:g})" for name, t in tolerances.items())
                raise ModelError(
                    f"the tolerances lead to parameters that are not valid: in sample {k}, with {told}, {error}; give "
                    "smaller tolerances"
                ) from None

    def _at(self, start: Any) -> Any:
        """A context in which the drawing has the parameter values of a state."""
        if start is None or not self._parameters or not isinstance(start, State) or start.is_drawn_at(self._drawn):
            return HERE
        drawn = self._values_of(start)
        if drawn == self._drawn:
            return HERE
        if self._elsewhere is None or self._elsewhere.drawn != drawn:
            values = self._book.evaluate(drawn)
            try:
                self._check_all_bounds(drawn)
                self._book.check(values, *self._formulas(), self._user_of)
            except ModelError as error:
                raise ModelError(f"the parameters of the state are not valid: {error}") from None
            self._elsewhere = Elsewhere(self, drawn, values, None)
        return self._elsewhere

    @property
    def system(self) -> System:
        """The packed, frozen system; made on demand."""
        if self._system is None:
            if not self._bodies:
                raise ModelError(f"mechanism {self.name!r} has no bodies; add one with m.body(name)")
            self._system = self._packed()
        elif self._system.values is not self._drawn and self._parameters:
            self._system = self._system.redrawn(self._book.values, self._drawn)
        return self._system

    def _packed(self, references: Any = None) -> System:
        """The system, with the reference frames of its bodies where they are given; see :class:`cardan.System`."""
        bodies, bundles = list(self._bodies.values()), list(self._joints.values())
        rows = list(self._rate_rows.values()) if self._rate_rows else ()
        return System(bodies, bundles, self._counted_angles(), references, rows, self._own_book(), self._display)

    def _counted_angles(self, with_loads: bool = False) -> list[CountedAngle]:
        """Angles whose whole turns are counted: those of all joints, if any relation (or load) reads one."""
        items: list[Joint | Load] = [*self._joints.values(), *self._rate_rows.values()]
        items += self._loads.values() if with_loads else ()
        needed = [counted for item in items for relation in item.relations for counted in relation.counted_angles]
        if not needed:
            return []
        found = {counted: None for joint in self._joints.values() for _, counted in joint.angles}
        return [*found, *(counted for counted in dict.fromkeys(needed) if counted not in found)]

    def _with_free(self, free: Iterable[str | Parameter]) -> System:
        """The system in which some parameters are unknowns."""
        if isinstance(free, str | Parameter):
            raise ModelError(f"free is {free!r}; it must be a list of parameters or their names")
        names = tuple(dict.fromkeys([self._parameter_name(item) for item in free]))
        for name in names:
            self._book.check_period(name, self._formulas()[0])
        return self.system.with_variables(names) if names else self.system

    @property
    def state(self) -> State:
        """The authored poses."""
        return self.system.state()

    def _checked_state(self, what: str, state: State | None) -> State:
        if state is None:
            return self.system.state()
        if not isinstance(state, State) or state.names != self.system.names:
            raise ModelError(f"{what} was given {state!r}; it must be a State of this mechanism, such as result.state")
        return state

    def adopt(self, state: State) -> None:
        """Make a state the drawing: its poses become the authored poses, its values those of the parameters.

        Whole turns are not part of a drawing.
        """
        if not isinstance(state, State):
            raise ModelError(f"adopt was given {state!r}; it must be a State, such as result.state")
        for body in self._bodies.values():
            if body.name not in state:
                raise ModelError(f"adopt was given a state without body {body.name!r}; it must be of this mechanism")
        values = self._values_of(state)
        self._check_all_bounds(values)
        if values != self._drawn:
            self._redraw(values)
        for body in self._bodies.values():
            pose = state[body]
            body.position = pose.position.tolist()
            body.orientation = pose.quaternion.tolist()

    def state_at(self, values: Mapping[Any, Any] | None = None) -> State:
        """Forward kinematics: the state in which coordinates of joints have given values, the others those as drawn.

        values: ``{"A": 0.3, "slide.displacement": 0.1, "ball": orientation, "free_body": (position, orientation)}``: by
        name of a joint with one coordinate, or "joint.coordinate", or a joint or coordinate; a ball joint takes the
        orientation of b in a, in any form of ``orientation=``; a body without a joint takes its pose.
        Bodies are placed along a spanning tree that prefers the given joints.  Joints that close loops are not
        considered: assemble the result, ``m.assemble(m.state_at(…))``.
        """
        found: State = _forward.state_at(self, {} if values is None else values)
        return found


HERE = nullcontext()  # the drawing as it is


class Elsewhere:
    """A context in which the drawing of a mechanism has other values of its parameters."""

    def __init__(self, mechanism: Drawing, drawn: dict[str, float], values: list[float], system: System | None) -> None:
        self.mechanism, self.drawn, self.values, self.system = mechanism, drawn, values, system
        self._kept: Any = None

    def __enter__(self) -> None:
        m = self.mechanism
        here = m.system  # packed before the values change, so that what does not depend on them is shared
        self._kept = m._book.values, m._drawn, here
        m._book.use(self.values)
        m._drawn, m._system = self.drawn, self.system or here
        self.system = m.system

    def __exit__(self, *_: object) -> None:
        m = self.mechanism
        self.system = m._system
        values, m._drawn, m._system = self._kept
        m._book.use(values)


def _check_bounds(name: str, value: float, lower: float, upper: float) -> None:
    if not lower <= value <= upper:
        raise ModelError(
            f"the value of parameter {name!r} is {value}; it must lie within {lower} and {upper}, its bounds"
        )


def _nodes_of(item: Joint | Load) -> list[int]:
    """Nodes of the formulas of a joint or load."""
    found = [node for relation in item.relations for node in relation.nodes]
    wrench = item.action.wrench if isinstance(item, Load) else None
    return found if wrench is None else [*found, *(node for _, node in bindings(wrench.point))]
