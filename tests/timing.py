"""Bars of time on a machine that does other work too.

A bar is a time of an idle machine.  ``slowness()`` tells how much longer a fixed piece of Python takes now than there,
so that a test compares two times of one run.
"""

from __future__ import annotations

import time

WORK = 100_000  # additions
IDLE = 3.1e-3  # s of processor time for them, on two idle cores of the machine that the bars were stated for


def slowness() -> float:
    """The time of the fixed work now, over its time on the idle machine; at least 1."""
    began = time.process_time()
    total = 0
    for k in range(WORK):
        total += k
    return max(1.0, (time.process_time() - began) / IDLE)
