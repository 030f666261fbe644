"""Whether a mechanism that cannot be assembled can be without its drivers, its limits, or the bounds of parameters."""

from __future__ import annotations

from typing import Final

from cardan.analysis.limits import active_limits
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.result import AssemblyResult
from cardan.constraints.promotion import is_bound
from cardan.system.state import State
from cardan.system.system import System

MOST_BODIES: Final = 100  # a larger mechanism is not solved again for the sake of a message
MOST_DRIVERS: Final = 8  # and limits, that are left out one by one
DIGITS: Final = range(6, 17)  # of a value and its bound: as few as tell them apart
RESTARTS: Final = 5


def contradictory_drivers(system: System, state: State, tolerance: float) -> list[str]:
    """The drivers without which the mechanism can be assembled at the time of a state, in words; or nothing."""
    names = [signal.name for _, signal in system.signals]
    why = "the joints do not allow its value", "they contradict the joints or each other"
    return _removable(system, "driver", names, why, state, tolerance)


def narrow_limits(system: System, state: State, tolerance: float) -> list[str]:
    """The limits, of those that are reached, without which the mechanism can be assembled, in words; or nothing."""
    names = list(dict.fromkeys([limit.name for limit in active_limits(system, state)]))
    why = "the joints do not allow its bounds", "they contradict the joints or each other"
    return _removable(system, "limit", names, why, state, tolerance)


def _removable(
    system: System, kind: str, names: list[str], why: tuple[str, str], state: State, tolerance: float
) -> list[str]:
    """Which of some constraints must be removed so that the mechanism can be assembled, in words; or nothing."""
    if not names or len(system.names) > MOST_BODIES or not _assembles(system, set(names), state, tolerance):
        return []
    if len(names) == 1:
        return [f"without {kind} {names[0]!r} it can be assembled: {why[0]}"]
    listed = ", ".join(map(repr, names[:MOST_DRIVERS])) + (" …" if len(names) > MOST_DRIVERS else "")
    text = f"without the {kind}s {listed} it can be assembled: {why[1]}"
    single = [name for name in names if len(names) <= MOST_DRIVERS and _assembles(system, {name}, state, tolerance)]
    if single:
        text += f"; it suffices to remove {' or '.join(map(repr, single))}"
    return [text]


def narrow_bounds(system: System, state: State, tolerance: float) -> list[str]:
    """The bounds of free parameters without which the mechanism can be assembled, in words; or nothing."""
    rows = {k: row for k, row in enumerate(system.rows) if is_bound(row.primitive)}
    book = system._source.book
    if not rows or book is None or len(system.names) > MOST_BODIES:
        return []
    found = _assemble(system, set(rows), state, tolerance)
    if not found.ok:
        return []
    beyond = []
    for row in rows.values():
        value, name = found.state.variables[row.constraint], row.constraint
        lower, upper = book.bounds[book.names.index(name)]
        if not lower <= value <= upper:
            side, bound = ("lower", lower) if value < lower else ("upper", upper)
            is_length = row.primitive.unit == "m"
            for digits in DIGITS:
                needed, allowed = (
                    system.display.text(x, "m", digits) if is_length else f"{x:.{digits}g}" for x in (value, bound)
                )
                if needed != allowed:
                    break
            beyond.append(f"{name!r} = {needed} (its {side} bound is {allowed})")
    if not beyond:
        return []
    kind = "parameter" if len(beyond) == 1 else "parameters"
    return [f"beyond the bounds of free parameters it can be assembled, for example with {kind} {', '.join(beyond)}"]


def _assembles(system: System, without: set[str], state: State, tolerance: float) -> bool:
    """Whether an assembly without some drivers, from a state, succeeds."""
    omitted = {k for k, row in enumerate(system.rows) if row.constraint in without}
    return _assemble(system, omitted, state, tolerance).ok


def _assemble(system: System, without: set[int], state: State, tolerance: float) -> AssemblyResult:
    """An assembly without some relations, by number, from a state."""
    from cardan.analysis.assemble import assemble

    chosen = [k for k in range(len(system.rows)) if k not in without]
    everything = list(range(len(system.names))), chosen, list(range(len(system.counted_angles)))
    part = System.from_source(system._source.part(*everything, system.variables))
    return assemble(part, state, None, AssemblyOptions(tolerance=tolerance, restarts=RESTARTS))
