"""What is done with the rows of a study: assemblies, motions or simulations of one model, and its digest.

A task is made once in each process, from the packed model; it computes a part of the rows as columns of numbers.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.analysis import run_many
from cardan.analysis.batch import assemble_many
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.result import Status
from cardan.analysis.run_outputs import Output, outputs_of
from cardan.analysis.runs import DONE, Runs
from cardan.analysis.sensitivity import read_poses
from cardan.analysis.simulation_options import SimulationOptions
from cardan.constraints.signal import Signal, pickled_by_value
from cardan.errors import ModelError
from cardan.joints import Coordinate
from cardan.system.state import FloatArray, State

KILLED: Final = "killed"  # status of a run that ended its process
ENDED: Final = (DONE, str(Status.ASSEMBLED))  # of runs that reached their end
MOST_DEPTH: Final = 40  # of what a digest follows


class Columns(NamedTuple):
    """Some runs: what was kept of them, shape (n, …) each, and how each ended."""

    outputs: Mapping[str, FloatArray]
    status: NDArray[np.str_]
    reason: list[str]
    notes: list[tuple[str, ...]]

    @staticmethod
    def joined(parts: list[Columns]) -> Columns:
        """All of them, one after the other."""
        first = parts[0]
        outputs = {label: np.concatenate([part.outputs[label] for part in parts]) for label in first.outputs}
        status = np.concatenate([part.status for part in parts])
        return Columns(outputs, status, [r for p in parts for r in p.reason], [n for p in parts for n in p.notes])


class Task:
    """One model, and what is computed and kept of it.

    duration [s]: of simulations; None for motions at ``times`` [s], or, without these, for assemblies of ``state``.
    options: of simulations.  tolerance: of motions and assemblies.
    """

    def __init__(
        self,
        mechanism: Any,
        outputs: Any,
        state: State | None,
        duration: float | None,
        times: Any,
        options: SimulationOptions | None,
        tolerance: float,
    ) -> None:
        self.mechanism, self.given, self.state = mechanism, outputs, state
        self.duration, self.times, self.options, self.tolerance = duration, times, options, tolerance
        self._prepare()

    def _prepare(self) -> None:
        self.drawing = self.mechanism._model.drawing
        self.outputs: tuple[Output, ...] = ()
        if self.kind == "assemble":
            self._start = self.drawing.checked_state("state=", self.state)
            self.labels = {label: unit for label, unit in read_poses(self.drawing, self._start, self.given)[0]}
        else:
            self.outputs = outputs_of(self.drawing, self.given, self.kind == "move")
            self.labels = {one.label: one.unit for one in self.outputs}

    def __getstate__(self) -> dict[str, Any]:
        made = ("drawing", "outputs", "labels", "_start")
        return {key: value for key, value in self.__dict__.items() if key not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    @property
    def kind(self) -> str:
        """ "simulate", "move" or "assemble"."""
        return "simulate" if self.duration is not None else "assemble" if self.times is None else "move"

    def run(self, values: Mapping[str, FloatArray], workers: int = 1, each: float | None = None) -> Columns:
        """The runs with these values.  each [s]: the longest time of a single run."""
        if self.kind == "assemble":
            return self._assemble(values, workers)
        runs = self.runs(values, workers, each)
        if runs.interrupted:
            raise KeyboardInterrupt
        return Columns({label: runs[label] for label in runs.labels}, runs.status, runs.reason, runs.notes)

    def runs(self, values: Mapping[str, FloatArray], workers: int, each: float | None) -> Runs:
        """Motions or simulations."""
        word = "states" if self.kind == "simulate" else "starts"
        starts = run_many.Starts(self.drawing, values, self.state, word)
        if self.kind == "simulate":
            assert self.duration is not None
            run, times = run_many.simulations(self.duration, starts, self.options or SimulationOptions())
        else:
            run, times = run_many.motions(self.mechanism, self.times, self.tolerance)
        return run_many.run_all(starts, run, times, self.outputs, workers=workers, each=each)

    def _assemble(self, values: Mapping[str, FloatArray], workers: int) -> Columns:
        options = AssemblyOptions(restarts=0, tolerance=self.tolerance)  # others could lead to another branch
        batch = assemble_many(self.drawing, self._start, None, (), values, options, workers, None)
        _, found = read_poses(self.drawing, self._start, self.given, batch, values)
        reason = ["" if ok else f"{status}: residual {residual:.3g}" for ok, status, residual in
                  zip(batch.ok.tolist(), batch.status.tolist(), batch.residual.tolist(), strict=True)]  # fmt: skip
        outputs = {label: found[:, k].copy() for k, label in enumerate(self.labels)}
        return Columns(outputs, batch.status, reason, [()] * len(reason))

    def again(self, values: Mapping[str, float]) -> Any:
        """One run alone: its whole result."""
        if self.kind == "assemble":
            state = self._start.with_variables(values)
            return self.mechanism.assemble(state, restarts=0, tolerance=self.tolerance)
        rows = {name: np.array([value]) for name, value in values.items()}
        return self.runs(rows, 1, None).again(0)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of an output of one run, of all outputs."""
        found = {one.label: (*self._times(), *one.shape) if one.is_series else one.shape for one in self.outputs}
        return {label: found.get(label, ()) for label in self.labels}

    def killed(self, count: int, reason: str) -> Columns:
        """Columns of runs that ended their process."""
        outputs = {label: np.full((count, *shape), np.nan) for label, shape in self.shapes().items()}
        return Columns(outputs, np.full(count, KILLED, dtype="U24"), [reason] * count, [()] * count)

    def _times(self) -> tuple[int]:
        own = {name: np.array([value]) for name, value in self.drawing.drawn.items()}
        starts = run_many.Starts(self.drawing, own, self.state, "states")
        if self.kind == "simulate":
            assert self.duration is not None
            return (len(run_many.simulations(self.duration, starts, self.options or SimulationOptions())[1]),)
        return (len(list(self.times)),)

    def digests(self) -> dict[str, str]:
        """Of the model, of the outputs, and of what is computed; they are the same in every process."""
        options = {} if self.options is None else {n: getattr(self.options, n) for n in self.options.__slots__}
        what = (self.kind, self.duration, self.times, sorted(options.items()), self.tolerance, self.state)
        return {"model": digest(model_text(self.mechanism)), "outputs": digest(self.given), "task": digest(what)}


def model_text(mechanism: Any) -> Any:
    """The text of a model file, or its description, where a file cannot contain it."""
    try:  # of a layer above, which is imported when it is needed
        return import_module("cardan.files.writer").dumps(mechanism, as_json=True, units=None)
    except ModelError:
        return mechanism.description()


def digest(value: Any) -> str:
    """SHA-256 of plain values, arrays, records and functions: by content, and never by an address."""
    made = hashlib.sha256()
    for piece in _pieces(value, 0, {}):
        made.update(piece)
    return made.hexdigest()


def _pieces(value: Any, depth: int, seen: dict[int, tuple[int, Any]]) -> Iterable[bytes]:
    """The bytes that a digest is made of.  seen: by its address, which it keeps for itself, number and object."""
    if value is None or isinstance(value, bool | int | float | str | bytes | complex):
        yield f"{type(value).__name__}:{value!r};".encode()
        return
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype != object:
            yield f"array:{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()
            return
        value = array.tolist()
    if id(value) in seen:
        yield f"again:{seen[id(value)][0]};".encode()
        return
    seen[id(value)] = len(seen), value
    if depth > MOST_DEPTH:
        raise ModelError(f"{value!r:.80} refers to too much for a digest; use functions of plain values")
    yield f"{type(value).__module__}.{type(value).__qualname__}(".encode()
    for part in _parts(value):
        yield from _pieces(part, depth + 1, seen)
    yield b")"


def _parts(value: Any) -> Iterable[Any]:
    """What an object consists of."""
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, set | frozenset):
        return sorted(map(digest, value))
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, partial):
        return (value.func, value.args, sorted(value.keywords.items()))
    if isinstance(value, types.MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        used = {n: value.__globals__[n] for n in _names(value.__code__) if n in value.__globals__}
        return (value.__code__, cells, value.__defaults__, value.__kwdefaults__, used)
    if isinstance(value, types.CodeType):
        return (value.co_code, value.co_consts, value.co_names, value.co_varnames)
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType | np.ufunc):
        return (getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__))
    if isinstance(value, State):
        return (value.names, value.coordinates, value.velocities, dict(value.angles), value.time, dict(value.variables))
    if isinstance(value, Coordinate):
        return (value.joint, value.name, value.kind, *value.bodies)
    if isinstance(value, Signal):
        return (value.name, value.kind, value.function)
    if callable(getattr(value, "description", None)):
        return (value.description(),)
    if is_dataclass(value):  # what it derives from them may have addresses
        return [(one.name, getattr(value, one.name)) for one in fields(value)]
    slots = [n for kind in type(value).__mro__ for n in getattr(kind, "__slots__", ()) if not n.startswith("__")]
    state = {n: getattr(value, n) for n in slots if hasattr(value, n)} | getattr(value, "__dict__", {})
    return sorted(state.items())


def _names(code: types.CodeType) -> list[str]:
    """Global names that a function uses, also within its inner functions."""
    inner = [name for one in code.co_consts if isinstance(one, types.CodeType) for name in _names(one)]
    return [*code.co_names, *inner]


# -- in the processes of workers ---------------------------------------------------------------------------------------

_tasks: dict[str, Task] = {}
_packed: dict[str, bytes] = {}


def keep(key: str, packed: bytes) -> None:
    """Keep the bytes of a task for :func:`run_part`."""
    _packed[key] = packed


def forget(key: str) -> None:
    """Forget a task."""
    _packed.pop(key, None)
    _tasks.pop(key, None)


def run_part(key: str, values: Mapping[str, FloatArray], each: float | None, packed: bytes | None = None) -> Columns:
    """A part, in a process of workers.  packed: the task, if the process may not have it."""
    task = _tasks.get(key)
    if task is None:
        import pickle

        data = packed if packed is not None else _packed[key]
        task = _tasks[key] = pickle.loads(data)
    return task.run(values, 1, each)


def pack(task: Task) -> bytes:
    """The bytes of a task, with functions of the user; ModelError if it cannot be sent."""
    try:
        from cloudpickle import dumps
    except ImportError:
        from pickle import dumps
    else:
        with pickled_by_value():
            return _packed_by(dumps, task)
    return _packed_by(dumps, task)


def _packed_by(dumps: Any, task: Task) -> bytes:
    try:
        return bytes(dumps(task))
    except ModelError:
        raise
    except Exception as error:  # pickling can raise any exception
        raise ModelError(f"the model cannot be sent to another process: {type(error).__name__}: {error}") from error


def as_json(value: Any) -> str:
    """Compact, with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
