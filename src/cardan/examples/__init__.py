"""The gallery: example mechanisms, each with facts that are checked against closed-form results.

To add an example, write a module that defines ``EXAMPLE`` and add its name to NAMES, or to CAD if it reads a STEP file.
"""

from importlib import import_module
from importlib.util import find_spec

from cardan.errors import ModelError
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

# Mechanisms with contacts.  Formulations by joints do not support them, and a distant start may lead to another pose.
CONTACT_NAMES = [
    "curve_pair",
    "surface_pair",
    "cam_flat",
    "cam_roller",
    "barrel_cam",
    "involute_pair",
    "belt_drive",
    "geneva",
    "ball_in_bowl",
    "coin",
    "rattleback",
    "knee",
    "vehicle",
    "grasp",
]

# Modules whose parts are modelled with OCP and read from a STEP file; they need the extra cad.
CAD = ["vice", "toggle_clamp", "engine"]

REGISTRY: dict[str, Example] = {name: import_module(f"{__name__}.{name}").EXAMPLE for name in NAMES}
CONTACTS: dict[str, Example] = {name: import_module(f"{__name__}.{name}").EXAMPLE for name in CONTACT_NAMES}
GALLERY = REGISTRY | CONTACTS


def installed() -> dict[str, Example]:
    """All examples that can be built here: with those of CAD where OCP is installed."""
    cad = CAD if find_spec("OCP") is not None else []
    return {**GALLERY, **{name: example for name in cad if (example := find(name)) is not None}}


def find(name: str) -> Example | None:
    """An example by name; None where there is none; ModelError where it needs what is not installed."""
    if name not in CAD:
        return GALLERY.get(name)
    if find_spec("OCP") is None:
        raise ModelError(f"example {name!r} has parts from CAD and needs cadquery-ocp; pip install 'cardan[cad]'")
    found: Example = import_module(f"{__name__}.{name}").EXAMPLE
    return found


__all__ = ["CAD", "CONTACTS", "GALLERY", "REGISTRY", "Example", "ExampleError", "find", "installed", "random_start"]
