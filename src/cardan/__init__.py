"""Cardan assembles, diagnoses, moves and simulates mechanisms."""

from __future__ import annotations

import logging
from math import pi

from cardan.analysis.result import AssemblyResult, Status
from cardan.diagnosis.freedom import Diagnosis
from cardan.errors import CardanError, ModelError, UnknownNameError
from cardan.joints import Joint
from cardan.mechanism import Mechanism
from cardan.system.parts import Body, Frame, Point
from cardan.system.residuals import Violation
from cardan.system.state import Pose, State
from cardan.system.system import System

__version__ = "0.1.0"

logging.getLogger("cardan").addHandler(logging.NullHandler())

__all__ = [
    "AssemblyResult",
    "Body",
    "CardanError",
    "Diagnosis",
    "Frame",
    "Joint",
    "Mechanism",
    "ModelError",
    "Point",
    "Pose",
    "State",
    "Status",
    "System",
    "UnknownNameError",
    "Violation",
    "__version__",
    "pi",
]
