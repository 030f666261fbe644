"""Loading saved results: the model is read again, and with it what was computed is made the result that it was."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from cardan import contents
from cardan.analysis.batch_result import BatchResult
from cardan.analysis.equilibrium import Equilibrium
from cardan.analysis.motion import Motion, MotionStatus
from cardan.analysis.result import AssemblyResult
from cardan.analysis.simulation import Simulation, SimulationStatus
from cardan.calls import explained
from cardan.dynamics.build import Inverse, connections, equations_of
from cardan.dynamics.equations import Equations
from cardan.errors import ModelError
from cardan.files import container, reader
from cardan.files.container import fail
from cardan.files.item_numbers import SAME, difference, numbers_of_items
from cardan.files.problems import FileError
from cardan.files.results import ENUM_NAMES, FORMAT, PARTS, RESULTS, VERSION, check_same
from cardan.math import euler
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.display import Display
from cardan.system.drawing import Drawing
from cardan.system.residuals import Violation
from cardan.system.state import FloatArray, Index, State
from cardan.system.system import System

MOST_DEPTH: Final = 40  # of nested values
# What fields of a saved dataclass may be, by their annotations; others are checked where they are used.
_PLAIN: Final[Mapping[str, Any]] = {
    **{"int": int, "float": (float, int), "str": str, "bool": bool, "State": State, "System": System},
    **{"FloatArray": np.ndarray, "IntArray": np.ndarray, "ComplexArray": np.ndarray, "Simulation": Simulation},
}


@explained
def load_result(path: str | Path, *, mechanism: Mechanism | None = None) -> Any:
    """The result in a file that ``result.save("run.npz")`` or ``result.save("run.json")`` wrote, as it was.

    Arrays of a ``.npz`` are the same to the last bit.  The model is in the file; mechanism: of the result, if the file
    is without a model, because a function of it cannot be written; its masses, dimensions and loads must be the same.
    Raises :class:`cardan.FileError`, a ModelError, if the file is damaged, of another kind or of a later version.
    Nothing in a file is executed or unpickled.
    """
    path = contents.file_path(path)
    if mechanism is not None and not isinstance(mechanism, Mechanism):
        raise ModelError(f"mechanism is {mechanism!r:.80}; it must be a cd.Mechanism")
    document, arrays = container.read(path)
    version = document.get(FORMAT)
    if type(version) is not int:
        fail(path, f"it is no saved result: it has no version, {FORMAT!r}")
    if not 1 <= version <= VERSION:
        fail(path, f"its format is version {version!r:.20}; this library reads versions 1 to {VERSION}: update it")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in RESULTS:
        fail(path, str(check.unknown(str(kind)[:40], "kind of result", RESULTS)))
    decoder = _Decoder(path, document, arrays, mechanism)
    try:
        decoder.check_given()
        found = decoder.value(document.get("data"))
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        fail(path, f"it is damaged: {str(error)[:200]}")
    if type(found) is not RESULTS[kind]:
        fail(path, f"it is damaged: it has {type(found).__name__} in place of {kind}")
    return found


class _Decoder:
    """Results from plain values and arrays."""

    def __init__(self, path: Any, document: Mapping[str, Any], arrays: container.Arrays, given: Any) -> None:
        self.path, self.document, self.arrays, self.given = path, document, arrays, given
        self._made: Mechanism | None = None
        self._depth = 0

    # -- the model -----------------------------------------------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        """That which was passed, or that of the file."""
        if self.given is not None:
            return self.given
        if self._made is None:
            text = self.document.get("model")
            if not isinstance(text, str):
                reason = str(self.document.get("without_model", "it was not written"))[:300]
                fail(self.path, f"it has no model ({reason}); pass it: cd.load_result(path, mechanism=m)")
            self._made = reader.read(text, f"{self.path}, model", as_json=True)
        return self._made

    def check_given(self) -> None:
        """FileError if an item of the mechanism that was passed differs, at the parameters of the result."""
        told = self.document.get("items")
        if self.given is None or told is None:
            return
        array, names, sizes = self.value(told["numbers"]), *zip(*told["sizes"], strict=True)
        parts = np.split(self._shaped(array, "numbers of items", sum(sizes)), np.cumsum(sizes)[:-1])
        words = difference(
            dict(zip(names, parts, strict=True)), numbers_of_items(self.drawing(self.value(told["values"])))
        )
        if words:
            fail(self.path, f"mechanism {self.given.name!r} is not that of the result: {words}")

    @property
    def has_model(self) -> bool:
        return self.given is not None or isinstance(self.document.get("model"), str)

    def drawing(self, values: Any, gravity: Any = None) -> Drawing:
        """The mechanism at values of its parameters."""
        drawing = self.mechanism._model.drawing
        if not isinstance(values, dict) or values.keys() != drawing.drawn.keys():
            fail(self.path, f"its parameters are not those of mechanism {self.mechanism.name!r}")
        numbers = {name: check.number(values[name], f"parameter {name!r}") for name in drawing.drawn}
        drawing = drawing.at_values(numbers)
        if gravity is None or tuple(gravity) == tuple(drawing.gravity):
            return drawing
        return Drawing(drawing.contents, check.vector(gravity, "the gravity"), drawing.values)

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, told: Any) -> Any:
        """What a plain value stands for."""
        if told is None or isinstance(told, bool | int | float | str):
            return told
        self._depth += 1
        if self._depth > MOST_DEPTH:
            fail(self.path, "it is damaged: its values are nested too deeply")
        try:
            if isinstance(told, list):
                return [self.value(item) for item in told]
            if "array" in told:
                return self.arrays[told["array"]]
            if "number" in told:
                return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[told["number"]]
            if "enum" in told:
                return ENUM_NAMES[told["enum"]](told["value"])
            if "tuple" in told:
                return tuple([self.value(item) for item in told["tuple"]])
            if "map" in told:
                pairs = {key: self.value(item) for key, item in told["map"]}
                if not all(isinstance(key, str) for key in pairs):
                    raise TypeError("a name is not a text")
                return pairs
            return self._object(told)
        finally:
            self._depth -= 1

    def _object(self, told: Mapping[str, Any]) -> Any:
        kind = told["kind"]
        special = _DECODERS.get(kind)
        if special is not None:
            return special(self, told)
        made = PARTS[kind]
        fields = {name: self.value(item) for name, item in told["fields"].items()}
        if dataclasses.is_dataclass(made):
            for field in dataclasses.fields(made):
                if field.name in fields:
                    self._check_field(kind, str(field.type), field.name, fields[field.name])
        found = made(**fields)
        if isinstance(found, AssemblyResult | BatchResult):
            self._check_assembly(found)
        if isinstance(found, Equilibrium) and found._instant is not None:
            found._instant._source = self._source()
        return found

    def _check_field(self, kind: str, annotation: str, name: str, value: Any) -> None:
        """FileError if a field is not what it is annotated with, as far as that is known."""
        words = annotation.split(" | ")
        if value is None and "None" in words:
            return
        enum = next((ENUM_NAMES[word] for word in words if word in ENUM_NAMES), None)
        wanted = enum or next((_PLAIN[word] for word in words if word in _PLAIN), None)
        if wanted is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
            fail(self.path, f"it is damaged: {name!r} of the {kind} is {value!r:.60}")

    def _source(self) -> tuple[Mechanism, int]:
        return self.mechanism, self.mechanism._model.contents.edits

    def _shaped(self, array: Any, what: str, *axes: int) -> Any:
        """An array of floats whose last axes are given; kernels trust it."""
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape[-len(axes) :] != axes:
            shape = getattr(array, "shape", None)
            fail(self.path, f"it is damaged, or of another mechanism: {what} have the shape {shape}, not (…, {axes})")
        if array.ndim > len(axes) + 1:
            fail(self.path, f"it is damaged: {what} have {array.ndim} axes")
        return array

    def _check_assembly(self, found: AssemblyResult | BatchResult) -> None:
        system = found._system
        tail = len(system.variable_names) + len(system.counted_angles)
        if isinstance(found, BatchResult):
            count = len(self._shaped(found.coordinates, "coordinates", len(system.names), 7))
            self._shaped(found.angles, "angles", tail)
            arrays = (found.angles, found.status, found.residual, found.tolerance, found.iterations, found.restarts)
            if found.coordinates.ndim != 3 or any(len(array) != count for array in arrays):
                fail(self.path, "it is damaged: its arrays have different lengths")
            return
        judged = system.judged()
        self._shaped(found._residuals, "residuals", sum(row.primitive.rows for row in judged.rows))
        if found.state.names != system.names:
            fail(self.path, "it is damaged: its state has other bodies than the model")
        if found._drawn is not None:
            poses, angles = found._drawn
            self._shaped(poses, "the poses of the start", len(system.names), 7)
            self._shaped(angles, "the angles of the start", angles.size)

    # -- objects -------------------------------------------------------------------------------------------------------

    def _system(self, told: Mapping[str, Any]) -> System:
        free, given = (tuple(told[word]) for word in ("free", "given"))
        system = self.drawing(self.value(told["values"])).system
        self._check_packing(told)
        for name in (*free, *given):
            if name not in system.values:
                raise check.unknown(name, "parameter", system.values)
        return system.with_variables(free, given) if free or given else system

    def _state(self, told: Mapping[str, Any]) -> State:
        names = self.value(told["names"])
        if type(names) is not tuple or not all(isinstance(name, str) for name in names):
            fail(self.path, "it is damaged: the names of bodies of a state are not texts")
        index: Any = Index({name: k for k, name in enumerate(names)})
        if self.has_model and self.mechanism._model.bodies:
            system = self.mechanism._model.drawing.system
            if system.names == names:
                index = system.index
        coordinates = self._shaped(self.value(told["coordinates"]), "coordinates", len(names), 7)
        rates = [self.value(told[word]) for word in ("velocities", "accelerations")]
        for rate in rates:
            if rate is not None:
                self._shaped(rate, "rates", len(names), 6)
        angles, variables = (self._numbers(told[word]) for word in ("angles", "variables"))
        time = self.value(told["time"])
        if not isinstance(time, float | int) or coordinates.ndim != 2:
            fail(self.path, f"it is damaged: the time of a state is {time!r:.40}")
        return State(
            names,
            index,
            coordinates,
            velocities=rates[0],
            accelerations=rates[1],
            angles=angles,
            time=float(time),
            variables=variables,
        )

    def _numbers(self, told: Any) -> dict[str, float]:
        found = self.value(told)
        if not isinstance(found, dict) or not all(type(value) in (float, int) for value in found.values()):
            fail(self.path, "it is damaged: angles or parameters of a state are not numbers")
        return {name: float(value) for name, value in found.items()}

    def _motion(self, told: Mapping[str, Any]) -> Motion:
        given = told["system"]
        drawing = self.drawing(self.value(given["values"]), self.value(told["gravity"]))
        system = drawing.system
        self._check_packing(given)
        bodies, keys = len(system.names), system.counted_angles
        times = self._shaped(self.value(told["times"]), "times", len(self.value(told["times"])))
        widths = {"coordinates": (bodies, 7), "velocities": (bodies, 6), "accelerations": (bodies, 6)}
        read = {word: self._shaped(self.value(told[word]), word, *axes) for word, axes in widths.items()}
        angles = self._shaped(self.value(told["angles"]), "angles", len(keys))
        if any(len(array) != len(times) or array.ndim != 3 for array in read.values()) or len(angles) != len(times):
            fail(self.path, "it is damaged: its arrays have different lengths")
        states = [
            system.state(q.copy(), own.copy() if keys else None, float(time)).with_rates(v, a)
            for q, v, a, own, time in zip(*read.values(), angles, times.tolist(), strict=True)
        ]
        words = ("status", "reason", "state", "steps", "_rotation", "undriven", "_notes")
        status, reason, last, steps, rotation, undriven, notes = (self.value(told[word]) for word in words)
        types = {
            "status": MotionStatus,
            "reason": str,
            "steps": int,
            "rotation": tuple,
            "undriven": tuple,
            "notes": tuple,
        }
        self._check_types("motion", types, (status, reason, steps, rotation, undriven, notes))
        if last is not None and (not isinstance(last, State) or last.names != system.names):
            fail(self.path, "it is damaged: its last state has other bodies than the model")
        made = Motion(system, states, status, reason, last, steps, rotation, undriven, notes)
        made._needs = Inverse.of(drawing)
        made._source = self._source()
        return made

    def _simulation(self, told: Mapping[str, Any]) -> Simulation:
        given = told["equations"]
        drawing = self.drawing(self.value(given["values"]), self.value(given["gravity"]))
        equations = equations_of(drawing)[0]
        self._check_packing(given)
        results = self._shaped(self.value(told["_results"]), "results", int(equations.columns))
        results = self._in_frames(results, given, equations)
        words = ("status", "reason", "_notes", "steps", "refused", "error", "_redundant", "events")
        status, reason, notes, steps, refused, error, redundant, events = (self.value(told[word]) for word in words)
        types: dict[str, Any] = {
            "status": SimulationStatus,
            "reason": str,
            "notes": tuple,
            "steps": int,
            "refused": int,
        }
        types |= {"error": (float, int), "redundant": bool, "events": tuple}
        self._check_types("simulation", types, (status, reason, notes, steps, refused, error, redundant, events))
        if results.ndim != 2:
            fail(self.path, f"it is damaged: its results have {results.ndim} axes")
        counts = {"steps": steps, "refused": refused, "error": error, "redundant": redundant, "events": events}
        made = Simulation(equations, results, status, reason, notes=notes, **counts)
        made._connections = connections(drawing)
        made._source = self._source()
        return made

    def _check_packing(self, told: Mapping[str, Any]) -> None:
        """ModelError if a system that is made again has not the constraints of the one that was saved."""
        check_same(self.mechanism, self.mechanism._model.drawing, told["constraints"], told["names"])

    def _in_frames(self, results: FloatArray, told: Mapping[str, Any], equations: Equations) -> FloatArray:
        """Results in the principal frames of equations that were made again; another computer may find other axes."""
        system, bodies = equations.system, len(equations.system.names)
        frames = self._shaped(self.value(told["frames"]), "frames", bodies, 7)
        masses = self._shaped(self.value(told["masses"]), "masses", *equations.masses.shape)
        origin = self._shaped(self.value(told["origin"]), "the origin", 3)
        pairs = [(np.sort(array[:, 3:], axis=1), array[:, :3]) for array in (masses, equations.masses)]
        if not all(np.allclose(a, b, rtol=SAME, atol=0.0) for a, b in zip(*pairs, strict=True)):
            fail(self.path, "the masses of its bodies are not those that the library computes from the model now")
        if np.array_equal(frames, system.reference_frames) and np.array_equal(origin, system.origin):
            return results
        return reframed(results, frames, origin, system)

    def _check_types(self, what: str, types: Mapping[str, Any], values: tuple[Any, ...]) -> None:
        for (word, kind), value in zip(types.items(), values, strict=True):
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                fail(self.path, f"it is damaged: {word!r} of the {what} is {value!r:.60}")

    def _violation(self, told: Mapping[str, Any]) -> Violation:
        made = Violation(*[self.value(item) for item in told["fields"]])
        made.display = Display(*told["display"])
        return made


_DECODERS: Final[Mapping[str, Any]] = {
    "System": _Decoder._system,
    "Drawing": lambda decoder, told: decoder.drawing(decoder.value(told["values"]), decoder.value(told["gravity"])),
    "State": _Decoder._state,
    "Motion": _Decoder._motion,
    "Simulation": _Decoder._simulation,
    "Violation": _Decoder._violation,
}


def reframed(results: FloatArray, frames: FloatArray, origin: FloatArray, system: System) -> FloatArray:
    """Results of a simulation in the reference frames of a system, from those in other frames and from another origin.

    With d from the old to the new centre of a body:  r + d,  v + ω × d,  v̇ + ω̇ × d + ω × (ω × d).
    """
    count, bodies = len(results), len(frames)
    found = results.copy()
    poses = found[:, 1 : 1 + 7 * bodies].reshape(count, bodies, 7)
    first = 1 + 7 * bodies + len(system.counted_angles)
    v, a = (found[:, k : k + 6 * bodies].reshape(count, bodies, 6) for k in (first, first + 6 * bodies))
    old, new = (np.broadcast_to(one[:, 3:], (count, bodies, 4)) for one in (frames, system.reference_frames))
    p = euler.multiply(poses[:, :, 3:], euler.conjugate(old))  # of the bodies
    d = euler.rotate(p, np.broadcast_to(system.reference_frames[:, :3] - frames[:, :3], (count, bodies, 3)))
    w, dw = (euler.rotate(poses[:, :, 3:], one[:, :, 3:]) for one in (v, a))  # in world
    turned = np.cross(w, d)
    found[:, 1 : 1 + 7 * bodies] = np.concatenate(
        [poses[:, :, :3] + d + origin - system.origin, euler.multiply(p, new)], axis=2
    ).reshape(count, -1)
    back = euler.conjugate(euler.multiply(p, new))
    for k, linear, angular in ((first, turned, w), (first + 6 * bodies, np.cross(dw, d) + np.cross(w, turned), dw)):
        own = v if k == first else a
        rates = np.concatenate([own[:, :, :3] + linear, euler.rotate(back, angular)], axis=2)
        found[:, k : k + 6 * bodies] = rates.reshape(count, -1)
    return found
