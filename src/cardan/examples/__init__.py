"""The gallery: example mechanisms, each with facts that are checked against closed-form results.

To add an example, write a module that defines ``EXAMPLE`` and add its name to NAMES.
"""

from importlib import import_module

from cardan.examples.registry import Example, ExampleError
from cardan.examples.starts import random_start

# Modules of the gallery, in the order in which it is listed.
NAMES = [
    "planar_4r",
    "rsur",
    "slider_crank",
    "stewart_distance",
    "stewart_ups",
    "bent_chain",
    "bricard",
    "watt",
    "peaucellier",
    "five_bar",
    "scissor_lift",
    "hoberman_ring",
    "jansen_leg",
    "four_cylinder",
    "cardan_joint",
    "double_cardan",
    "planetary_gear",
    "differential",
    "lead_screw",
    "indexing_table",
    "folding_table",
    "delta_robot",
    "strandbeest",
]

REGISTRY: dict[str, Example] = {name: import_module(f"{__name__}.{name}").EXAMPLE for name in NAMES}

__all__ = ["REGISTRY", "Example", "ExampleError", "random_start"]
