"""Whether a mechanism that cannot be assembled can be without its drivers, or without one of them."""

from __future__ import annotations

from typing import Final

from cardan.analysis.options import AssemblyOptions
from cardan.system.state import State
from cardan.system.system import System

MOST_BODIES: Final = 100  # a larger mechanism is not solved again for the sake of a message
MOST_DRIVERS: Final = 8  # that are left out one by one
RESTARTS: Final = 5


def contradictory_drivers(system: System, state: State, tolerance: float) -> list[str]:
    """The drivers without which the mechanism can be assembled at the time of a state, in words; or nothing."""
    names = [signal.name for _, signal in system.signals]
    if len(system.names) > MOST_BODIES or not _assembles(system, set(names), state, tolerance):
        return []
    if len(names) == 1:
        return [f"without driver {names[0]!r} it can be assembled: the joints do not allow its value"]
    listed = ", ".join(map(repr, names[:MOST_DRIVERS])) + (" …" if len(names) > MOST_DRIVERS else "")
    text = f"without the drivers {listed} it can be assembled: they contradict the joints or each other"
    single = [name for name in names if len(names) <= MOST_DRIVERS and _assembles(system, {name}, state, tolerance)]
    if single:
        text += f"; it suffices to remove {' or '.join(map(repr, single))}"
    return [text]


def _assembles(system: System, without: set[str], state: State, tolerance: float) -> bool:
    """Whether an assembly without some drivers, from a state, succeeds."""
    from cardan.analysis.assemble import assemble

    chosen = [k for k, row in enumerate(system.rows) if row.constraint not in without]
    everything = list(range(len(system.names))), chosen, list(range(len(system.counted_angles)))
    part = System.from_source(system._source.part(*everything, system.variables))
    return assemble(part, state, None, AssemblyOptions(tolerance=tolerance, restarts=RESTARTS)).ok
