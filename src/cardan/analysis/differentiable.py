"""Which runs have a gradient: what is listed here is differentiated, and everything else is refused by name.

New features are refused until they are listed.  Besides, the reverse sweep makes every step again and compares it with
the run (:data:`MISMATCH`), so that what is not known to it cannot give a wrong gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cardan.constraints import adjoints
from cardan.dynamics import tables
from cardan.dynamics.functions import Called
from cardan.dynamics.integrate import STABILIZATIONS, Integration
from cardan.errors import ModelError

if TYPE_CHECKING:
    from cardan.analysis.simulation import Simulation

MISMATCH: Final = 1e-8  # of the extent, of speeds above one, or [rad]: steps that are made again and differ by more

# attributes of Equations and of Contents that the sweep knows, or that the checks below refuse
OF_EQUATIONS: Final = """
    system forces offsets problem algebra equations rate_rows poses guards is_judged_otherwise masses metric is_massless
    gravity coordinates light inertias joint_inertias compliances weights mass_pieces values drivers timed openings
    stops stop_table bounds
"""
OF_CONTENTS: Final = """
    _colliding _used bodies book closed collisions display edits formed ground inertias joints loads name opening
    parameters rate_rows records
"""
LAWS: Final = (tables.LINEAR, tables.MATRIX, tables.RECORDED)
SORTS: Final = (tables.PLAIN, tables.APART, tables.INCLINED)


def _refused(what: str, way: str) -> ModelError:
    return ModelError(f"this run has no gradient yet: {what}; {way}")


def check_run(simulation: Simulation) -> Integration:
    """The run of a simulation that can be differentiated; ModelError names what cannot."""
    if not simulation.ok:
        raise _refused(f"it ended early ({simulation.status}: {simulation.reason})", "let it reach its end")
    if simulation._run is None or simulation._start is None:
        raise _refused("it was loaded from a file", "simulate again")
    run = simulation._run[0]
    if type(run) is not Integration:
        _check_steps(simulation, run)
        raise _refused(_of_kind(simulation, run), "use events without contacts that open, and method='adams'")
    if run.method != "adams":
        raise _refused(f"its method is {run.method!r}", "use 'adams'")
    stabilization = STABILIZATIONS[int(run.control.stabilization)]
    if stabilization != "projection":
        raise _refused(f"its stabilization is {stabilization!r}", "use 'projection'")
    if simulation.events or run.bounds["side"].any():
        what = ", ".join(dict.fromkeys(repr(getattr(one, "limit", "a contact")) for one in simulation.events))
        times = [one.time for one in simulation.events] or [run.first]
        raise _refused(f"a limit or contact acts ({what}, first at t = {times[0]:g} s)", "give wider bounds")
    _check_contents(simulation)
    _check_equations(run)
    return run


def _check_steps(simulation: Simulation, run: Integration) -> None:
    """ModelError names the joint or the limit for which a run has steps of its own."""
    if run.equations.openings:
        return
    if rebounding := [stop for stop in run.equations.stops if stop.restitution]:
        stop = rebounding[0]
        raise _refused(f"limit {stop.name!r} has restitution={stop.restitution:g}", "make it without restitution")
    _check_contents(simulation)


def _of_kind(simulation: Simulation, run: Integration) -> str:
    opening = [one.name for one in run.equations.openings]
    if opening:
        return f"contact {opening[0]!r} opens"
    kind = type(run).__name__
    return "its method is 'generalized_alpha'" if kind == "GeneralizedAlpha" else f"its steps are those of {kind}"


def _check_contents(simulation: Simulation) -> None:
    contents = simulation._equations.system.index.contents
    if contents is None:
        raise _refused("its mechanism is not known, as after pickling", "simulate again")
    words = {"collisions": "bodies collide", "opening": "contacts open", "inertias": "joints have inertias"}
    words |= {"frictions": "joints have friction", "rate_rows": "there are constraints of rates"}
    for slot in sorted({slot for kind in type(contents).__mro__ for slot in getattr(kind, "__slots__", ())}):
        value = getattr(contents, slot, None)
        if (slot in words or slot not in OF_CONTENTS.split()) and _is_there(value):
            names = ", ".join(map(repr, value)) if isinstance(value, dict) else ""
            raise _refused(f"{words.get(slot, slot)} ({names})" if names else words.get(slot, slot), "remove them")
    for load in contents.loads.values():
        law = load.action.law
        if isinstance(load.action.function, Called):
            raise _refused(
                f"load {load.name!r} is a function that Python calls", "use a function of (t, coordinate, rate) that "
                "only computes, or a constant"
            )  # fmt: skip
        if law is not None and (law.code not in LAWS or law.sort not in SORTS):
            raise _refused(f"load {load.name!r} has a law that is not differentiated", "use another load")


def _is_there(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.size and value.any())
    return bool(value)


def _check_equations(run: Integration) -> None:
    e = run.equations
    for word, value in vars(e).items():
        if word not in OF_EQUATIONS.split() and _is_there(value):
            raise _refused(f"its equations have {word}", "leave them out")
    if (e.bounds["lower"] == e.bounds["upper"]).any():
        raise _refused(f"{e.stops[0].name!r} is a limit without play", "use a driver")
    if e.is_massless:
        names = [name for name, own in zip(e.system.names, e.masses, strict=True) if not own.all()]
        raise _refused(f"body {names[0]!r} has no mass or no inertia", "give it both")
    if e.timed.size:
        raise _refused("a parameter of a joint is a function of time", "use a driver")
    if e.inertias or e.rate_rows or e.openings:
        raise _refused("joints have inertias, or there are constraints of rates", "remove them")
    if e.system.has_contacts:
        raise _refused(f"{_first_contact(e.system)} is a contact", "replace it")
    for row in e.system.rows:
        if not all(adjoints.addresses(row.primitive)):
            raise _refused(
                f"{row.constraint!r} has the equation {row.primitive.name!r}, whose third derivatives are not known",
                "use another joint",
            )
    for row in e.forces._packed.rows if e.forces is not None else ():
        if not all(adjoints.addresses(row.primitive)):
            raise _refused(
                f"load {row.constraint!r} acts on {row.primitive.name!r}, whose third derivatives are not known",
                "use another load",
            )


def _first_contact(system: Any) -> str:
    names = [row.constraint for row in system.rows if row.primitive.is_contact]
    return repr(names[0]) if names else "a joint"
