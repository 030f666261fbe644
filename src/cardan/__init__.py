"""Cardan assembles, diagnoses and moves mechanisms."""

from __future__ import annotations

import logging
from importlib import import_module
from math import pi
from typing import TYPE_CHECKING, Any

from cardan.analysis.motion import Motion, MotionStatus
from cardan.analysis.result import AssemblyResult, Status
from cardan.constraints.functions import (
    acos,
    asin,
    atan,
    atan2,
    clip,
    cos,
    cosh,
    cross,
    dot,
    exp,
    log,
    norm,
    rotation_vector,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from cardan.constraints.jets import Jet
from cardan.constraints.user import primitive
from cardan.errors import CardanError, ModelError, UnknownNameError
from cardan.joints import Coordinate, Joint, coordinate
from cardan.mechanism import Mechanism
from cardan.system.parts import Body, Direction, Frame, Point
from cardan.system.residuals import Violation
from cardan.system.state import Pose, State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.batch_result import BatchResult
    from cardan.analysis.options import AssemblyOptions
    from cardan.diagnosis.freedom import Diagnosis

__version__ = "0.1.0"

_LAZY = {
    "AssemblyOptions": "cardan.analysis.options",
    "BatchResult": "cardan.analysis.batch_result",
    "Diagnosis": "cardan.diagnosis.freedom",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'cardan' has no attribute {name!r}")


logging.getLogger("cardan").addHandler(logging.NullHandler())

__all__ = [
    "AssemblyOptions",
    "AssemblyResult",
    "BatchResult",
    "Body",
    "CardanError",
    "Coordinate",
    "Diagnosis",
    "Direction",
    "Frame",
    "Jet",
    "Joint",
    "Mechanism",
    "ModelError",
    "Motion",
    "MotionStatus",
    "Point",
    "Pose",
    "State",
    "Status",
    "System",
    "UnknownNameError",
    "Violation",
    "__version__",
    "coordinate",
    "primitive",
    "acos",
    "asin",
    "atan",
    "atan2",
    "clip",
    "cos",
    "cosh",
    "cross",
    "dot",
    "exp",
    "log",
    "norm",
    "pi",
    "rotation_vector",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
