"""Tables of the attempts of an assembly: whole turns."""

from __future__ import annotations

from cardan.kernel.table import Int, Table


class TurnRow(Table):
    """A row that determines the whole turns of a counted angle."""

    angle: Int  # number of the angle
    row: Int
    is_limit: Int  # ≠ 0: a row of a limit
