"""Names for what evaluators read and write: parts of the packed tables, of q, and of the workspace.

A record is a pointer into the integers, read by field: ``record[ROWS]``.  Its features begin at ``features(record)``;
``feature(features(record), k)[KIND]`` is a field of the k-th.  Accessors made by ``piece`` are pointer arithmetic in
the calling kernel and take no time, neither to run nor to compile.
"""

from typing import NamedTuple

from cardan.kernel.jit import inner
from cardan.kernel.memory import piece, tail
from cardan.system import layout

AXES = 9  # floats of three axes, from which a counted angle is read

pose = piece(layout.POSE, 0, layout.POSE)  # (q, body)
position = piece(layout.POSE, 0, 3)
quaternion = piece(layout.POSE, 3, 4)
matrix = piece(layout.MATRIX, 0, layout.MATRIX)  # (work, body)
axis = piece(3, 0, 3)  # (axes, k)
feature = piece(layout.FEATURE, 0, layout.FEATURE)  # (features(record), k)
angle_record = piece(layout.ANGLE_RECORD, 0, layout.ANGLE_RECORD)  # (ints from ANGLE_TABLE on, k)


@inner
def features(record):
    """The first feature of a record."""
    return tail(record, layout.RECORD + record[layout.SLOTS])


@inner
def counted_angles(ints, q):
    """The counted angles in q."""
    return tail(q, layout.POSE * ints[layout.BODIES] + ints[layout.VARIABLES])


@inner
def variables(ints, q):
    """The variables in q."""
    return tail(q, layout.POSE * ints[layout.BODIES])


@inner
def curvature_codes(ints):
    """Codes or addresses of ẋᵀ f_xx ẋ, one per constraint: the end of a motion problem's table."""
    return tail(ints, ints[layout.ANGLE_TABLE] + layout.ANGLE_RECORD * ints[layout.ANGLES])


class Workspace(NamedTuple):
    """Where the pieces of a pose evaluator's workspace begin; the rotation matrices are the first."""

    features: int  # x of one constraint, or the axes of a counted angle
    rates: int  # ẋ
    biases: int  # ẍ at v̇ = 0
    derivatives: int  # ∂f/∂x, row by row
    tangents: int  # four floats: derivative of one feature by a variable
    expanded: int  # floats at the values of the variables, derivatives of formulas
    size: int


def plan_workspace(ints):
    """The one plan of that workspace: Python takes its size from it, kernels its pieces (:func:`workspace`)."""
    widest = max(ints[layout.WIDEST], AXES)
    features = layout.MATRIX * ints[layout.BODIES]
    rates = features + widest
    biases = rates + widest
    derivatives = biases + widest
    tangents = derivatives + widest * ints[layout.TALLEST]
    expanded = tangents + (4 if ints[layout.VARIABLES] > 0 else 0)
    return Workspace(features, rates, biases, derivatives, tangents, expanded, expanded + ints[layout.EXPANDED])


workspace = inner(plan_workspace)
