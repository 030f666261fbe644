"""A cost of runs as a function of parameters, with its gradient: what optimisers call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cardan.analysis.costs import MADE_OF, Cost
from cardan.analysis.simulate import simulate
from cardan.analysis.simulation_options import SimulationOptions
from cardan.calls import explains
from cardan.errors import ModelError
from cardan.system.drawing import Drawing
from cardan.system.formulas import Parameter
from cardan.system.state import FloatArray, State


@explains()
class Objective:
    """``value, gradient = f(x)``: a cost of a run at values x of some parameters, and its derivatives by them.

        f = m.objective(1.0, cost, over=["L", "k"], step=1e-3)
        found = scipy.optimize.minimize(f, f.x0, jac=True, bounds=f.bounds)

    ``names``: of the parameters, in the order of x.  ``x0``: their values when the objective was made.  ``bounds``:
    those of the parameters.  ``history``: x and value of every run.  ``start``: the state in which runs begin; it is
    assembled at the values of each run.  The mechanism itself is not changed: ``f.values(x)`` gives x by name.
    """

    def __init__(
        self,
        drawing: Drawing,
        duration: float,
        cost: Cost,
        over: tuple[str, ...],
        start: State,
        options: SimulationOptions,
    ) -> None:
        self._drawing, self._duration, self._cost, self._options = drawing, duration, cost, options
        self.names, self.start = over, start
        own = [drawing.contents.parameters[name] for name in over]
        self.x0: FloatArray = np.array([start.variables[name] for name in over])
        self.bounds: list[tuple[float, float]] = [(one.lower, one.upper) for one in own]
        self.history: list[tuple[FloatArray, float]] = []

    def values(self, x: Any) -> dict[str, float]:
        """The values x by name."""
        found: FloatArray = np.asarray(x, dtype=np.float64)
        if found.shape != (len(self.names),) or not np.isfinite(found).all():
            raise ModelError(f"x is {x!r}; it must be {len(self.names)} finite numbers, of {', '.join(self.names)}")
        return dict(zip(self.names, found.tolist(), strict=True))

    def __call__(self, x: Any) -> tuple[float, FloatArray]:
        values = self.values(x)
        state = _at(self.start, values)
        told = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        try:
            drawing = self._drawing.at(state)
            run = simulate(drawing, self._duration, state, self._options, {})
            if not run.ok:
                raise ModelError(f"the run ended early: {run.status}: {run.reason}")
            found = run.gradient(self._cost, self.names)
        except ModelError as error:
            raise ModelError(f"at {told}: {error}") from None
        self.history.append((np.array(list(values.values())), found.value))
        return found.value, np.array([found[name] for name in self.names])

    def __repr__(self) -> str:
        return f"<Objective of {', '.join(self.names)}: {len(self.history)} runs>"


def objective(
    drawing: Drawing, duration: float, cost: Any, over: Iterable[Any], state: Any, options: SimulationOptions
) -> Objective:
    """See :meth:`cardan.Mechanism.objective`."""
    if not isinstance(cost, Cost):
        raise ModelError(f"the cost is {cost!r}; it must be made of {MADE_OF}")
    if isinstance(over, str | Parameter):
        raise ModelError(f"over is {over!r}; it must be a list of parameters or their names")
    names = tuple(dict.fromkeys(map(drawing.contents.parameter_name, over)))
    if not names:
        raise ModelError("over is empty; give the parameters that x stands for")
    run = simulate(drawing, duration, state, options, {})
    if not run.ok:
        raise ModelError(f"the run at the values of the mechanism ended early: {run.status}: {run.reason}")
    run.gradient(cost, names)  # what cannot be differentiated is said now
    return Objective(drawing, duration, cost, names, _at(run.states[0], {}), options)


def _at(s: State, values: Mapping[str, float]) -> State:
    """A state at other values of the parameters."""
    variables = {**s.variables, **values}
    return State(
        s.names, s._index, s.coordinates, velocities=s.velocities, angles=s.angles, time=s.time, variables=variables
    )
