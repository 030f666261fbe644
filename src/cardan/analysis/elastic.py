"""Flexible bodies in analyses: which refuse them, and the assembly of least elastic energy.

An assembly with flexible bodies has their elastic coordinates η as unknowns, and is that of the least ½ Σ ηᵀKη with
all joints closed: the rest shape, where the joints allow it.  It begins where the bodies, held in their shape at the
start, close the joints, or nearly: far from there other minima are possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from cardan.analysis.assemble import assemble, assemble_least
from cardan.analysis.least_cost import Cost
from cardan.analysis.options import AUTO, AssemblyOptions
from cardan.analysis.result import AssemblyResult
from cardan.errors import ModelError
from cardan.system.drawing import Drawing
from cardan.system.formulas import Parameter
from cardan.system.state import FloatArray
from cardan.system.system import System


def refuse(drawing: Drawing, what: str) -> None:
    """ModelError if a mechanism has flexible bodies, which ``what`` does not consider yet."""
    name = drawing.contents.flexible[0].body
    raise ModelError(
        f"{what} does not consider flexible bodies yet, and {name!r} is one; use m.assemble, m.equilibrium, "
        "m.linearize or m.simulate, or a mechanism in which it is rigid"
    )


def assemble_elastic(
    drawing: Drawing, free: Iterable[str | Parameter], start: Any, time: Any, options: AssemblyOptions, rest: Any
) -> AssemblyResult:
    """See :meth:`cardan.Mechanism.assemble`, with flexible bodies.  rest: workers and least."""
    workers, least = rest
    names = ", ".join(repr(one.body) for one in drawing.contents.flexible)
    if least is not None:
        raise ModelError(f"least is {least!r}, but with flexible bodies ({names}) it is their energy; omit least=")
    for other, word in ((drawing.contents.collisions, "collisions"), (drawing.contents.opening, "contacts that open")):
        if other:
            raise ModelError(f"assemble does not consider {word} with flexible bodies ({names}); use a copy without")
    own = [one for elastic in drawing.contents.flexible for one in elastic.coordinates]
    given = [free] if isinstance(free, str | Parameter) else list(free)
    if isinstance(free, str | Parameter):
        drawing.with_free(free)  # which refuses it
    system = drawing.with_free([*given, *own])
    once = replace(options, restarts=0) if options.method == AUTO else options
    rigid = assemble(drawing.system, start, time, once)
    return assemble_least(system, rigid.state, time, options, workers, _energy(drawing, system))


def _energy(drawing: Drawing, system: System) -> Cost:
    """½ Σ ηᵀKη as a function of the free variables."""
    names = list(system.variables.free)
    K = np.zeros((len(names), len(names)))
    for elastic in drawing.contents.flexible:
        places = [names.index(one.name) for one in elastic.coordinates]
        K[np.ix_(places, places)] = elastic.modes.stiffness

    def energy(v: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        slope = K @ v
        return 0.5 * float(v @ slope), slope, K

    return energy
