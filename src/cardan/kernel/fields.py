"""Records in kernels: on the stack, and behind another record (:mod:`cardan.kernel.table`).

The compiled forms are in :mod:`cardan.kernel.compiled_fields`.
"""

from __future__ import annotations

import numpy as np

from cardan.kernel.dual import accessor


@accessor
def local(table):
    """A record of zeros that lives as long as the kernel runs."""
    return table(np.zeros(table.size))


@accessor
def after(record, count):
    """The record of the same table that follows ``count`` numbers of the open field of this one."""
    table = type(record)
    return table._unchecked(record.as_ints[table.size + count :])
