"""What a model file contains: the keys of its tables.  Kinds of joints and loads come from their own signatures."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cardan.calls import parameters_of
from cardan.dynamics import loads
from cardan.dynamics.loads import LoadKind
from cardan.joints import REGISTRY as JOINTS
from cardan.joints import JointKind, Role
from cardan.joints.coordinates import RULES
from cardan.mechanism import Mechanism
from cardan.quantities import Quantity, annotated

VERSION: Final = 2  # of the format
SUFFIXES: Final = (".toml", ".json")

# Keys of the file itself, of a body, and of a saved pose.
TOP: Final = (
    "cardan",
    "name",
    "gravity",
    "units",
    "display",
    "parameters",
    "bodies",
    "primitives",
    "joints",
    "rates",
    "loads",
    "collisions",
    "poses",
)
BODY: Final = ("position", "orientation", "mass", "inertia", "center", "frames", "shapes")
POSE: Final = ("time", "bodies", "angles", "variables")
PARAMETER: Final = ("value", "lower", "upper", "period")
KNIFE_EDGE: Final = ("kind", "frame", "relative_to")
COLLISIONS: Final = ("bodies", "exclude", "margin", "joined", "restitution", "friction")
POSED: Final = ("position", "orientation", "velocity", "angular_velocity")
PRIMITIVE: Final = ("arguments", "parameters", "unit", "rows")
ENDS: Final[Mapping[str, tuple[str, ...]]] = {
    "frame": ("body", "origin", "z", "x"),
    "point": ("body", "point"),
    "vector": ("body", "vector"),
    "coordinate": ("a", "b", "of"),
}
COORDINATES: Final = tuple(RULES)
SORTS: Final = ("angle", "displacement")  # kinds of coordinates that an end may need
SHORT_FORMS: Final = ("wheel",)  # methods that make contacts, and are no kinds of their own

# A spline through points, or of given pieces.
POINTS: Final = ("x", "y", "periodic")
PIECES: Final = ("breaks", "coefficients", "periodic")
DISPLAY: Final = ("length", "angle")


class Option(NamedTuple):
    """An option of a kind."""

    name: str
    required: bool
    quantity: Quantity
    default: Any


INERTIA: Final = Option("inertia", False, Quantity(""), 0.0)  # of a joint: an attribute, and no argument of its method


@dataclass(frozen=True)
class Spec:
    """A kind of joint or load: its ends, each with what it takes, and its options."""

    name: str
    ends: tuple[tuple[str, str, bool], ...]  # name, what it takes, required
    options: Mapping[str, Option]
    sorts: Mapping[str, str] = field(default_factory=dict)  # of ends: the kind of coordinate they take, if not any

    @functools.cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of its table."""
        return ("kind", *(name for name, _, _ in self.ends), *self.options)

    @functools.cached_property
    def required(self) -> tuple[str, ...]:
        """Keys that must be there, other than its kind."""
        options = (option.name for option in self.options.values() if option.required)
        return (*(name for name, _, must in self.ends if must), *options)

    @functools.cached_property
    def functions(self) -> tuple[str, ...]:
        """Names of the options that are functions."""
        return tuple(option.name for option in self.options.values() if option.quantity.sort == "function")


def _option(build: Callable[..., Any], parameter: inspect.Parameter) -> Option:
    required = parameter.default is parameter.empty
    return Option(parameter.name, required, annotated(build, parameter), None if required else parameter.default)


def _takes(word: str) -> str:
    """What an end of a joint takes: a feature, or a coordinate of a kind."""
    return word if word in ("frame", "point") else "coordinate"


def _joint(kind: JointKind[Any]) -> Spec:
    parameters = inspect.signature(kind.build).parameters
    ends = tuple((name, _takes(takes), True) for name, takes in zip(kind.ends, kind.takes, strict=True))
    sorts = {name: takes for name, takes in zip(kind.ends, kind.takes, strict=True) if takes in SORTS}
    options = {name: _option(kind.build, parameters[name]) for name in kind.options}
    if kind.takes_inertia:
        options["inertia"] = INERTIA
    return Spec(kind.name, ends, options, sorts)


def _contact(name: str) -> Spec:
    """A contact: its ends are the arguments that are faces, frames or points."""
    ends, options = [], {}
    method = getattr(Mechanism, name)
    for parameter in parameters_of(method)[2:]:
        word = str(parameter.annotation).partition(" ")[0]
        if word in ("Attachment", "Frame", "Point"):
            takes = "face" if word == "Attachment" else word.lower()
            ends.append((parameter.name, takes, parameter.default is parameter.empty))
        elif parameter.name != "query":  # an object of Python
            options[parameter.name] = _option(method, parameter)
    return Spec(name, tuple(ends), options)


def _load(kind: LoadKind[Any]) -> Spec:
    parameters = list(kind.signature.parameters.values())
    count = len(kind.takes)
    ends = [(p.name, takes, p.default is p.empty) for p, takes in zip(parameters, kind.takes, strict=False)]
    # a coordinate names itself in a file, as "joint.coordinate"
    options = {p.name: _option(kind.build, p) for p in parameters[count:] if p.name != "of"}
    return Spec(kind.name, tuple(ends), options)


@functools.cache  # all kinds are registered when modules are imported
def joint_specs() -> Mapping[str, Spec]:
    """Every kind of joint, coupling, driver, limit and contact; those made of a primitive are described by it."""
    kinds = [kind for kind in JOINTS.values() if kind.takes and kind.role is not Role.RATE]
    with_faces = [kind.name for kind in kinds if "face" in kind.takes]
    return {kind.name: _joint(kind) for kind in kinds if "face" not in kind.takes} | {
        name: _contact(name) for name in (*with_faces, *SHORT_FORMS)
    }


@functools.cache
def load_specs() -> Mapping[str, Spec]:
    """Every kind of load."""
    return {name: _load(kind) for name, kind in loads.REGISTRY.items()}
