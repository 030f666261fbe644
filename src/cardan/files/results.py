"""Saved results: what a result consists of, as plain values and arrays, and the model that it was computed with.

A file has the text of the model, and of the result only what was computed: states, multipliers, verdicts.  Packed
systems and equations of motion are made again from the model (:mod:`.loaded_results`).
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cardan.analysis.batch_result import BatchResult
from cardan.analysis.equilibrium import Equilibrium, EquilibriumStatus
from cardan.analysis.motion import Motion, MotionStatus, Undriven
from cardan.analysis.repairs import Repair
from cardan.analysis.result import AssemblyResult, Status
from cardan.analysis.sensitivity import Output, Sensitivity, Tolerances
from cardan.analysis.simulation import Simulation, SimulationStatus
from cardan.analysis.vibration import Linearization
from cardan.diagnosis.freedom import Diagnosis, Equation
from cardan.diagnosis.motions import FreeMotion
from cardan.dynamics.build import Inverse, equations_of, inertia_rows
from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import Event
from cardan.errors import ModelError
from cardan.files import container, reader, writer
from cardan.files.item_numbers import difference, numbers_of_items, of_bodies
from cardan.files.units import SI
from cardan.joints.gaps import Touching
from cardan.mechanism import Mechanism
from cardan.system.drawing import Drawing
from cardan.system.residuals import Violation
from cardan.system.state import State
from cardan.system.system import System

FORMAT: Final = "cardan_result"  # the key of the version
VERSION: Final = 1

DATACLASSES: Final = (AssemblyResult, BatchResult, Equilibrium, Linearization, Sensitivity, Tolerances, Diagnosis)
TUPLES: Final = (Undriven, Event, Equation, FreeMotion, Output, Repair, Touching)
ENUMS: Final = (Status, MotionStatus, SimulationStatus, EquilibriumStatus)
RESULTS: Final = {kind.__name__: kind for kind in (*DATACLASSES, Motion, Simulation, State)}
PARTS: Final = {kind.__name__: kind for kind in (*DATACLASSES, *TUPLES)}
ENUM_NAMES: Final = {kind.__name__: kind for kind in ENUMS}


def to_bytes(suffix: str, result: Any, mechanism: Mechanism | None = None) -> bytes:
    """The bytes of a file with a result.  mechanism: that of the result, if it is not known."""
    encoder = _Encoder()
    data = encoder.value(result)
    version = sys.modules["cardan"].__version__
    document = {FORMAT: VERSION, "library": version, "kind": type(result).__name__, "data": data}
    m, reason = _mechanism(encoder, mechanism)
    if m is not None:
        text, reason = _model(m)
        document |= {"model": text} if text else {}
        for packed in encoder.packed[:1]:
            values = dict((packed if isinstance(packed, System) else packed.system).values)
            numbers = numbers_of_items(m._model.drawing.at_values(values))
            sizes = [[name, len(own)] for name, own in numbers.items()]
            array = encoder.value(np.concatenate([np.empty(0), *numbers.values()]))
            document["items"] = {"values": encoder.value(values), "sizes": sizes, "numbers": array}
    document |= {"without_model": reason} if reason else {}
    return container.write(suffix, document, encoder.arrays)


def _mechanism(encoder: _Encoder, given: Mechanism | None) -> tuple[Mechanism | None, str]:
    """The mechanism of a result, or None and why it is not known."""
    contents = encoder.contents
    if given is not None:
        if not isinstance(given, Mechanism):
            raise ModelError(f"mechanism is {given!r:.80}; it must be the cd.Mechanism of the result")
        for known in encoder.packed:
            _check_fits(given, known)
        for needs in encoder.needs:
            _check_needs(given, needs)
        return given, ""
    if contents is None:
        if encoder.packed:
            raise ModelError("this result was pickled, without its mechanism; pass it: result.save(path, mechanism=m)")
        return None, ""
    m: Mechanism = contents.ground.owner
    if m._model.edits == contents.edits:
        return m, ""
    if encoder.packed:
        raise ModelError(
            f"mechanism {m.name!r} was edited since this result was computed; save results before, compute it again, "
            "or pass a copy from before: result.save(path, mechanism=copy)"
        )
    return None, f"mechanism {m.name!r} was edited since"


def _model(m: Mechanism) -> tuple[str, str]:
    """The text of a model, or "" and why it cannot be written."""
    try:
        for units in (None, SI):
            text = writer.dumps(m, as_json=True, units=units)
            if reader.read(text, "the model", as_json=True) == m:
                return text, ""
    except ModelError as error:
        return "", str(error)
    return "", f"mechanism {m.name!r} is not the same when it is written and read again"


def _check_fits(m: Mechanism, known: System | Equations) -> None:
    """ModelError if what was packed for a result is not of a mechanism."""
    system = known if isinstance(known, System) else known.system
    drawing = m._model.drawing
    check_same(m, drawing, system.constraints, system.names)
    drawing = drawing.at_values({**drawing.drawn, **system.values})
    if isinstance(known, System):
        same = drawing.system
        is_same = (same.with_variables(*known.variables) if known.variables.names else same) == known
    else:
        now = equations_of(drawing)[0]
        is_same = now.system == system
        if is_same and not (np.array_equal(now.masses, known.masses) and now.inertias == known.inertias):
            raise ModelError(f"mechanism {m.name!r} is not that of the result: its masses or inertias differ")
        if is_same and now.forces != known.forces:
            raise ModelError(f"mechanism {m.name!r} is not that of the result: its loads differ")
    if not is_same:
        raise ModelError(f"mechanism {m.name!r} is not that of the result: its dimensions differ")


def _check_needs(m: Mechanism, needs: Inverse) -> None:
    """ModelError if the forces of a motion are not those that a mechanism needs for it."""
    drawing = m._model.drawing
    if needs.loaded is not None:
        drawing = drawing.at_values({**drawing.drawn, **needs.loaded.drawn})
        words = difference(numbers_of_items(needs.loaded), numbers_of_items(drawing))
    else:
        words = difference(of_bodies(needs.parts), of_bodies(drawing.records))
        added = [*drawing.contents.loads, *drawing.contents.inertias]
        words = words or (f"it has the load or joint inertia {added[0]!r}" if added else "")
    if words:
        raise ModelError(f"mechanism {m.name!r} is not that of the result: {words}")


def check_same(m: Mechanism, drawing: Drawing, constraints: Any, names: Any) -> None:
    """ModelError if a mechanism has other bodies or constraints than a result.  constraints: one for each relation."""
    rows = inertia_rows(drawing.contents.joints, drawing.inertias)  # a simulation has these too
    known = [*drawing.system.constraints, *drawing.system.rate_constraints, *rows]
    if tuple(names) != drawing.system.names or Counter(constraints) - Counter(known):
        raise ModelError(f"mechanism {m.name!r} is not that of the result: its bodies or joints differ")


class _Encoder:
    """A result as plain values; arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.contents: Any = None  # of the mechanism, as it was
        self.needs: list[Inverse] = []  # of the forces of motions
        self.packed: list[System | Equations] = []  # for the result, which cannot be loaded without a model

    def value(self, value: Any) -> Any:
        """Plain values for JSON."""
        if value is None or (isinstance(value, bool | str) and not isinstance(value, Enum)):
            return value
        if isinstance(value, Enum):
            return {"enum": type(value).__name__, "value": value.value}
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"number": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        special: Any = _ENCODERS.get(type(value))
        if special is not None:
            return {"kind": type(value).__name__, **special(self, value)}
        if type(value).__name__ in PARTS and PARTS[type(value).__name__] is type(value):
            return {"kind": type(value).__name__, "fields": self._fields(value)}
        if isinstance(value, tuple) and type(value) is tuple:
            return {"tuple": [self.value(item) for item in value]}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, Mapping):
            return {"map": [[key, self.value(item)] for key, item in value.items()]}
        raise ModelError(f"a result with {value!r:.80} cannot be saved")

    def _array(self, array: NDArray[Any]) -> dict[str, str]:
        kinds = {"f": np.float64, "i": np.int64, "c": np.complex128, "b": np.bool_, "U": None}
        if array.dtype.kind not in kinds:
            raise ModelError(f"an array of the dtype {array.dtype} cannot be saved")
        name = f"array_{len(self.arrays)}"
        wanted = kinds[array.dtype.kind]
        self.arrays[name] = array if wanted is None else np.asarray(array, dtype=wanted)
        return {"array": name}

    def _fields(self, value: Any) -> dict[str, Any]:
        names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
        return {name: self.value(getattr(value, name)) for name in names}

    def _note(self, packed: System | Equations) -> None:
        system = packed if isinstance(packed, System) else packed.system
        self.contents = self.contents or system.index.contents
        self.packed.append(packed)

    def _system(self, system: System) -> dict[str, Any]:
        self._note(system)
        variables = {"free": list(system.variables.free), "given": list(system.variables.given)}
        return {"values": self.value(dict(system.values)), **variables, **self._packing(system)}

    def _drawing(self, drawing: Drawing) -> dict[str, Any]:
        self.contents = self.contents or drawing.contents
        return {"values": self.value(dict(drawing.drawn)), "gravity": self.value(tuple(drawing.gravity))}

    def _packing(self, system: System) -> dict[str, Any]:
        """What a system that is made again is compared with."""
        return {"constraints": list(system.constraints), "names": list(system.names)}

    def _state(self, state: State) -> dict[str, Any]:
        self.contents = self.contents or getattr(state._index, "contents", None)
        words = ("names", "coordinates", "velocities", "accelerations", "time")
        found = {word: self.value(getattr(state, word)) for word in words}
        return {**found, "angles": self.value(dict(state.angles)), "variables": self.value(dict(state.variables))}

    def _motion(self, motion: Motion) -> dict[str, Any]:
        assert motion._needs is not None
        self.needs.append(motion._needs)
        states, keys = motion.states, motion._system.counted_angles
        count, bodies = len(states), len(motion.names)
        plain = {
            "coordinates": np.array([s.coordinates for s in states]).reshape(count, bodies, 7),
            "velocities": np.array([s.velocities for s in states]).reshape(count, bodies, 6),
            "accelerations": np.array([s.accelerations for s in states]).reshape(count, bodies, 6),
            "angles": np.array([[s.angles[key] for key in keys] for s in states]).reshape(count, len(keys)),
            "times": motion.times.reshape(count),
        }
        words = ("status", "reason", "state", "steps", "_rotation", "undriven", "_notes")
        own = {word: self.value(getattr(motion, word)) for word in words}
        gravity = {"gravity": self.value(tuple(motion._needs.gravity)), "system": self.value(motion._system)}
        return {**{word: self.value(array) for word, array in plain.items()}, **own, **gravity}

    def _simulation(self, simulation: Simulation) -> dict[str, Any]:
        if simulation._record is not None:
            raise ModelError(
                "a simulation with contacts that open, bodies that collide, or limits with restitution cannot be saved "
                "yet, nor one with friction of joints; save its states"
            )
        words = ("_results", "status", "reason", "_notes", "steps", "refused", "error", "_redundant", "events")
        own = {word: self.value(getattr(simulation, word)) for word in words}
        return {**own, "equations": self.value(simulation._equations)}

    def _equations(self, equations: Equations) -> dict[str, Any]:
        self._note(equations)
        gravity = tuple(float(g) for g in np.asarray(equations.gravity).tolist())
        system = equations.system
        found = {"values": self.value(dict(system.values)), "gravity": self.value(gravity), **self._packing(system)}
        arrays = {"frames": system.reference_frames, "origin": system.origin, "masses": equations.masses}
        return found | {word: self.value(np.array(array)) for word, array in arrays.items()}

    def _violation(self, violation: Violation) -> dict[str, Any]:
        display = violation.display
        own = [violation.name, self.value(violation.residual), violation.unit]
        return {"fields": own, "display": [display.length, display.angle]}


_ENCODERS: Final[Mapping[type, Any]] = {
    System: _Encoder._system,
    Drawing: _Encoder._drawing,
    State: _Encoder._state,
    Motion: _Encoder._motion,
    Simulation: _Encoder._simulation,
    Equations: _Encoder._equations,
    Violation: _Encoder._violation,
}
