"""What dynamics needs of a mechanism in addition to its packed system, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cardan.dynamics import mass
from cardan.dynamics.equations import Equations
from cardan.dynamics.reactions import Connection
from cardan.system.check import Triple
from cardan.system.system import System


class Model(NamedTuple):
    """Masses, gravity [m/s²], and where each constraint is attached, at the time when a motion was computed.

    ``points`` [m]: where each body is joined, in its axes, by its name.
    """

    parts: tuple[mass.Part, ...]
    points: Mapping[str, Sequence[Any]]
    gravity: Triple
    connections: Mapping[str, Connection]
    loaded: Any = None  # a copy of the mechanism, if it has loads

    def equations(self, system: System) -> Equations:
        """The equations of motion of a packed system of the mechanism; ModelError where a mass does not allow it."""
        if self.loaded is not None:
            equations: Equations = self.loaded._equations()[0]
            return equations
        found = mass.masses(self.parts, self.points, system.judged_length)
        return Equations(system.rated.with_references(found.frames), found.diagonal, np.array(self.gravity))
