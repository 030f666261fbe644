"""Tables of contacts with friction in a run by events: shared by Python and :mod:`cardan.dynamics._friction`."""

from __future__ import annotations

from typing import Final

from cardan.dynamics.tables import HISTORY
from cardan.kernel.table import Float, Table

FREE, SLIP, STICK = 0.0, 1.0, 2.0  # values of Grip.mode; a contact that rolls sticks
SHARED: Final = -2.0  # Bound.side of a closed contact whose force is not unique: it has no events of its own
FADED: Final = 2.0**-600  # the factor of rows that are kept, but no equations: their products vanish
MOST_STAGES: Final = 7  # of a Runge–Kutta step


class Grip(Table):
    """A contact with friction."""

    mode: Float  # FREE: open, or closed by a force that is not unique; SLIP; STICK
    hold: Float  # static coefficient
    drag: Float  # kinetic coefficient
    normal: Float  # its equation
    stop: Float  # its number among the stops
    first: Float  # of its tangential equations
    rows: Float  # number of these
    entry: Float  # of the first of them in the Jacobian
    slots: Float  # its bodies
    bodies: Float[2]
    is_shared: Float  # its force is not unique: it has no events of its own
    slide: Float[2]  # direction of the slip
    base: Float[2]  # the same at the start of the step
    speed: Float  # along base at the start of the step [m/s]
    excess: Float  # of the friction force over the static one at the start of the step [N]
    slip: Float[2]  # velocity [m/s]
    slowing: Float  # A [m/s²]
    force: Float  # normal force while it slips [N]


class Friction(Table):
    """All of them, and the energy that they take."""

    count: Float
    event: Float  # 1 + the contact that begins to slip, or stops; 0
    passed: Float  # the event, and its stop, of the last try that was too long
    passed_stop: Float
    is_jammed: Float  # whether no finite force was found
    stages: Float  # of Runge–Kutta steps; 0: of Adams' method
    trials: Float  # of a step that is to end at an event
    power: Float  # [W] of the last solution
    lost: Float  # [J] up to the last accepted step
    before: Float  # [J] up to the start of that step
    powers: Float[HISTORY]  # of the accelerations that are kept
    stage_powers: Float[MOST_STAGES]
    grips: Grip[...]
