"""Many motions or simulations, on one thread or several: each run is a row of values of the parameters, and a state.

A run is computed by the same code as a single one, in which the kernels release the GIL: its numbers do not depend on
the number of threads, nor on the other runs.  Only its outputs are kept.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, Final

import numpy as np

from cardan.analysis import move as moving
from cardan.analysis import simulate as simulating
from cardan.analysis.batch import checked_values
from cardan.analysis.chunks import Progress, Worker, run_chunks, worker_count
from cardan.analysis.many import CHUNKS_PER_WORKER
from cardan.analysis.motion import Motion
from cardan.analysis.move_apart import move_apart
from cardan.analysis.run_outputs import Output, outputs_of
from cardan.analysis.runs import DONE, ERROR, INTERRUPTED, NOT_BEGUN, STOPPED, TIME_LIMIT, Runs
from cardan.analysis.simulation import Simulation
from cardan.analysis.simulation_options import SimulationOptions
from cardan.dynamics.build import Inverse
from cardan.errors import CardanError, ModelError
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.state import FloatArray, State

MOST_NUMBERS: Final = 1_000_000_000  # kept of all runs: 8 GB
MOST_CHUNK: Final = 64  # runs
SAME_TIME: Final = 1e-9  # of the span of the times: an output this near to one of them is there

Run = Callable[[Drawing, State, float | None, Callable[[float], None]], Any]
"""From a drawing at the values of a run, its start, the seconds left and a progress function to a result."""


class Starts:
    """The starts of many runs: values of parameters, and states."""

    def __init__(self, drawing: Drawing, values: Any, states: Any, word: str) -> None:
        """word: how the states are called in messages."""
        self.drawing = drawing
        own = drawing.system.state()
        self.values = {} if values is None else checked_values(values, drawing.contents.parameter_name)
        drawing.check_values(self.values, {})
        if states is None or isinstance(states, State):
            self._one: State | None = own if states is None else drawing.checked_state(f"{word}=", states)
            self._states: Sequence[State] = ()
            if not self.values:
                raise ModelError(f"there are no runs; give values={{parameter: array}}, or a list of {word}")
            self.count = len(next(iter(self.values.values())))
        elif isinstance(states, Sequence) and not isinstance(states, str) and len(states):
            self._one, self.count = None, len(states)
            self._states = [self._checked(word, k, state) for k, state in enumerate(states)]
        else:
            raise ModelError(f"{word} is {states!r:.80}; it must be a state, or a list of states, one for each run")
        for name, numbers in self.values.items():
            if len(numbers) != self.count:
                raise ModelError(f"values has {len(numbers)} numbers for {name!r}, but there are {self.count} {word}")
        times = {state.time for state in self._states}
        if len(times) > 1:
            raise ModelError(f"the {word} are states at {len(times)} different times; all runs begin at one time")
        self.time = self._one.time if self._one is not None else times.pop()

    def _checked(self, word: str, k: int, state: Any) -> State:
        if not isinstance(state, State):
            raise ModelError(f"{word}[{k}] is {state!r:.80}; it must be a State, such as m.state or result.state")
        return self.drawing.checked_state(f"{word}[{k}]", state)

    def state(self, k: int) -> State:
        """The state in which run ``k`` begins, with its values and, where they are given, its velocities."""
        one = self._one if self._one is not None else self._states[k]
        if not self.values:
            return one
        found = one.with_variables({name: float(own[k]) for name, own in self.values.items()})
        return found if one.velocities is None else found.with_rates(one.velocities)


def simulate_many(
    drawing: Drawing,
    duration: float,
    starts: Starts,
    outputs: Any,
    options: SimulationOptions,
    workers: int | None,
    progress: Progress | None,
) -> Runs:
    """See :meth:`cardan.Mechanism.simulate_many`."""
    run, times = simulations(duration, starts, options)
    found = outputs_of(drawing, outputs, is_motion=False)
    limit = options.max_seconds
    return _allowed(run_all(starts, run, times, found, workers=workers, progress=progress, max_seconds=limit))


def simulations(duration: float, starts: Starts, options: SimulationOptions) -> tuple[Run, FloatArray]:
    """How a single run is simulated, and the output times."""
    length = check.positive(duration, "duration")
    if options.progress is not None:
        raise ModelError("options have a function progress of one run; give progress=, which gets (done, total)")

    def run(own: Drawing, state: State, left: float | None, watch: Callable[[float], None]) -> Simulation:
        own_options = replace(options, max_seconds=left, progress=watch)
        return simulating.simulate(own, length, state, own_options, {})

    return run, simulating._outputs(starts.time, length, options.step, options.times)


def move_many(
    drawing: Drawing,
    mechanism: Any,
    times: Iterable[float],
    starts: Starts,
    outputs: Any,
    tolerance: float,
    max_seconds: float | None,
    workers: int | None,
    progress: Progress | None,
) -> Runs:
    """See :meth:`cardan.Mechanism.move_many`."""
    run, wanted = motions(mechanism, times, tolerance)
    found = outputs_of(drawing, outputs, is_motion=True)
    limit = None if max_seconds is None else check.positive(max_seconds, "max_seconds")
    return _allowed(run_all(starts, run, wanted, found, workers=workers, progress=progress, max_seconds=limit))


def motions(mechanism: Any, times: Iterable[float], tolerance: float) -> tuple[Run, FloatArray]:
    """How a single driven motion is computed, and its times."""
    wanted = moving._check_times(times)

    def run(own: Drawing, state: State, left: float | None, watch: Callable[[float], None]) -> Motion:
        options: dict[str, Any] = {"tolerance": tolerance, "max_seconds": left, "progress": watch}
        if own.contents.collisions:
            motion = move_apart(own, mechanism, wanted, state, **options)
        else:
            motion = moving.move(own.system, wanted, state, **options)
        motion._needs = Inverse.of(own)
        return motion

    return run, wanted


def _allowed(runs: Runs) -> Runs:
    """The runs; ModelError if all fail for the same reason: then the model or the options are wrong, not one run."""
    reasons = set(runs.reason)
    if len(reasons) == 1 and (runs.status == ERROR).all():
        raise ModelError(reasons.pop())
    return runs


def run_all(
    starts: Starts,
    run: Run,
    times: FloatArray,
    outputs: tuple[Output, ...],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    max_seconds: float | None = None,
    each: float | None = None,
) -> Runs:
    """All runs, in chunks; after Ctrl-C those that were finished.

    max_seconds: for all runs together.  each [s]: for every single run.
    """
    began = clock.perf_counter()
    threads = worker_count(workers)
    if progress is not None and not callable(progress):
        raise ModelError(f"progress is {progress!r}; it must be a function (done, total)")
    count = starts.count
    shapes = {one.label: (count, *((len(times),) if one.is_series else ()), *one.shape) for one in outputs}
    numbers = sum(int(np.prod(shape)) for shape in shapes.values())
    if numbers > MOST_NUMBERS:
        raise ModelError(
            f"the outputs of {count} runs are {numbers:,} numbers, which take too much memory; keep reductions, such "
            "as 'max(…)', or fewer times"
        )
    kept = {label: np.full(shape, np.nan) for label, shape in shapes.items()}
    deadline = None if max_seconds is None else began + max_seconds
    again = partial(_again, starts, run)
    found = Runs(starts.values, count, times, kept, {one.label: one.unit for one in outputs}, again, starts.state)
    batch = _Batch(starts, run, outputs, found, deadline, each)
    size = max(1, min(MOST_CHUNK, count // (CHUNKS_PER_WORKER * threads)))
    try:
        run_chunks(count, size, batch.make_worker, threads, progress)
    except KeyboardInterrupt:  # the runs that were finished are kept, and the others say so
        found.interrupted = True
    found.seconds = clock.perf_counter() - began
    return found


def _again(starts: Starts, run: Run, k: int) -> Any:
    """One run alone."""
    state = starts.state(k)
    return run(starts.drawing.at(state), state, None, lambda _: None)


class _Batch:
    """What the threads share: where the outputs of each run are written."""

    def __init__(
        self,
        starts: Starts,
        run: Run,
        outputs: tuple[Output, ...],
        found: Runs,
        deadline: float | None,
        each: float | None,
    ) -> None:
        self.starts, self.run, self.outputs, self.found = starts, run, outputs, found
        self.deadline, self.each = deadline, each
        self._near = SAME_TIME * float(np.ptp(found.times))

    def make_worker(self, stop: Event) -> Worker:
        """A worker for the runs first … last − 1."""

        def watch(_: float) -> None:
            if stop.is_set():  # by the keyboard, in the main thread
                raise KeyboardInterrupt

        def worker(first: int, last: int) -> None:
            for k in range(first, last):
                if stop.is_set():
                    return
                self._take(k, watch)
                if self.found.status[k] == INTERRUPTED and not stop.is_set():
                    raise KeyboardInterrupt  # which the run has caught

        return worker

    def _take(self, k: int, watch: Callable[[float], None]) -> None:
        """Compute a run, and keep its outputs."""
        found = self.found
        left = None if self.deadline is None else self.deadline - clock.perf_counter()
        if left is not None and left <= 0.0:
            found.status[k], found.reason[k] = TIME_LIMIT, NOT_BEGUN
            return
        left = min((one for one in (left, self.each) if one is not None), default=None)
        try:
            state = self.starts.state(k)
            result = self.run(self.starts.drawing.at(state), state, left, watch)
            status, reason = str(result.status), result.reason
            if status not in STOPPED and len(result.times):
                self._keep(k, result)
        except KeyboardInterrupt:
            for one in self.outputs:
                found[one.label][k] = np.nan
            raise
        except CardanError as error:
            status, reason, result = ERROR, str(error), None
        except Exception as error:  # of a function of the user, such as that of a driver: the other runs go on
            status, reason, result = ERROR, f"{type(error).__name__}: {error}", None
        found.reason[k] = "" if status == DONE else reason
        found.notes[k] = () if result is None else tuple(result.notes)
        found.status[k] = status

    def _keep(self, k: int, result: Any) -> None:
        """Write the outputs of a run."""
        reached, wanted = result.times, self.found.times
        count = min(len(reached), len(wanted))
        if abs(reached[count - 1] - wanted[count - 1]) > self._near:  # the end of a run between two times
            count -= 1
        for one in self.outputs:
            value = one.read(result)
            if one.is_series:
                self.found[one.label][k, :count] = value[:count]
            else:
                self.found[one.label][k] = value
