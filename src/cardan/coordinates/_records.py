"""Names for what evaluators read and write: parts of the packed tables, of q, and of the workspace.

The features of a record begin at ``features(record)``: ``Feature(features(record), k)`` is the k-th.  Accessors made by
``piece`` are pointer arithmetic in the calling kernel and take no time, neither to run nor to compile.
"""

from typing import NamedTuple

from cardan.kernel.jit import inner
from cardan.kernel.memory import piece, tail
from cardan.system.tables import ANGLE_RECORD, AXES, MATRIX, POSE, Feature

pose = piece(POSE, 0, POSE)  # (q, body)
position = piece(POSE, 0, 3)
quaternion = piece(POSE, 3, 4)
matrix = piece(MATRIX, 0, MATRIX)  # (work, body)
axis = piece(3, 0, 3)  # (axes, k)


@inner
def features(record):
    """The first feature of a record."""
    return Feature(tail(record.bodies, record.slots))


@inner
def counted_angles(system, q):
    """The counted angles in q."""
    return tail(q, POSE * system.bodies + system.variables)


@inner
def variables(system, q):
    """The variables in q."""
    return tail(q, POSE * system.bodies)


@inner
def curvature_codes(system):
    """Codes or addresses of ẋᵀ f_xx ẋ, one per constraint: the end of a motion problem's table."""
    return tail(system.angle_table.as_ints, ANGLE_RECORD * system.angles)


class Workspace(NamedTuple):
    """Where the pieces of a pose evaluator's workspace begin; the rotation matrices are the first."""

    features: int  # x of one constraint, or the axes of a counted angle
    rates: int  # ẋ
    biases: int  # ẍ at v̇ = 0
    derivatives: int  # ∂f/∂x, row by row
    tangents: int  # four floats: derivative of one feature by a variable
    expanded: int  # floats at the values of the variables, derivatives of formulas
    size: int


def plan_workspace(system):
    """The one plan of that workspace: Python takes its size from it, kernels its pieces (:func:`workspace`)."""
    widest = max(system.widest, AXES)
    features = MATRIX * system.bodies
    rates = features + widest
    biases = rates + widest
    derivatives = biases + widest
    tangents = derivatives + widest * system.tallest
    expanded = tangents + (4 if system.variables > 0 else 0)
    return Workspace(features, rates, biases, derivatives, tangents, expanded, expanded + system.expanded)


workspace = inner(plan_workspace)
