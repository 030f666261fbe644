"""A study: one model, a sample of its parameters, and what is kept of each run; it can be stopped and continued."""

from __future__ import annotations

import copy
import sys
import time as clock
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cardan.analysis.chunks import Progress
from cardan.analysis.runs import Failure
from cardan.analysis.simulation_options import SimulationOptions, StudyArguments, simulation_options
from cardan.calls import explains
from cardan.errors import ModelError
from cardan.study import runner, statistics
from cardan.study.folder import Folder, Memory
from cardan.study.sample import Sample, sample_of
from cardan.study.task import ENDED, Columns, Task, digest
from cardan.system import check
from cardan.system.html import as_html, table_of
from cardan.system.state import FloatArray, State

SECONDS: Final = 0.5  # [s] of computing in a part
TRIALS: Final = 3  # runs whose time is measured
MOST_RUNS: Final = 100_000  # in a part
MOST_LISTED: Final = 5


@explains()
class Study:
    """Many runs of one model over a sample of its parameters; from ``m.study(…)``.

    ``values``: of parameters by name, shape (n,) each.  ``units``: of the outputs, by their labels.  ``path``: the
    folder of its parts, "" for the memory of this process.  :meth:`run` computes what is missing.
    """

    def __init__(self, task: Task, sample: Sample) -> None:
        """task: on a copy of the mechanism, so that later edits do not matter."""
        self._task = task
        self.sample = sample
        drawing = task.drawing
        self.values: Mapping[str, FloatArray] = sample.values(drawing.drawn)
        drawing.check_values(self.values, {})
        self.units: Mapping[str, str] = task.labels
        self._store: Memory | Folder = Memory()
        self._size = 0
        self.seconds = 0.0
        self.interrupted = False

    # -- computing -----------------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        workers: int | None = None,
        executor: Any = None,
        client: Any = None,
        path: str | Path | None = None,
        size: int | None = None,
        max_seconds: float | None = None,
        run_seconds: float | None = None,
        progress: Progress | None = None,
    ) -> Study:
        """Compute the runs that are missing, and keep them in parts; returns the study itself.

        workers: threads, or processes of a local cluster; None for one per core.
        executor: of concurrent.futures, such as a ProcessPoolExecutor.
        client: a dask.distributed.Client, the address of a scheduler, or "local" for processes on this machine, which
        are started and ended here.  Workers may join, leave or fail.
        path: a folder for the parts, which is made; each part is a file.  Another call, also by another process, at the
        same time or after this one was killed, computes only what is missing.  None: in the memory of this process.
        size: runs in a part; by the measured time of a run where it is not given, so that a part takes 0.5 s.
        max_seconds: for the whole call: the part under way is finished.  run_seconds: for a single run, whose status is
        then "time limit".
        progress: called with the number of finished runs, and of all runs.
        After Ctrl-C the finished parts are kept, and ``interrupted`` is True.
        """
        began = clock.perf_counter()
        if executor is not None and client is not None:
            raise ModelError("executor= and client= are given; give one of them")
        if executor is not None and workers is not None:
            raise ModelError(f"workers is {workers}, but an executor has its own; leave out workers=")
        limit = None if max_seconds is None else began + check.positive(max_seconds, "max_seconds")
        each = None if run_seconds is None else check.positive(run_seconds, "run_seconds")
        if progress is not None and not callable(progress):
            raise ModelError(f"progress is {progress!r}; it must be a function (done, total)")
        wanted = None if size is None else check.count(size, "size", 1, MOST_RUNS)
        self._open(path, wanted)
        self.interrupted = False
        work = runner.Work(self._task, self._rows, each, f"{digest(self._digests())[:16]}-{clock.time_ns():x}")
        ends: list[Callable[[], Any]] = []
        claimed: set[int] = set()
        clusters = 0
        try:
            self._tell(progress)
            while missing := self._missing():
                parts = self._claimed(missing, claimed, limit)
                done = self._begin(work, parts, workers, executor, client, ends)
                try:
                    self._take(done, claimed, progress)
                except runner.NoWorkersError:
                    clusters += 1
                    if client != "local" or clusters == runner.MOST_CLUSTERS:
                        raise
                    while ends:
                        ends.pop()()
                if limit is not None and clock.perf_counter() > limit:
                    break
                if self._missing():  # by another client, which may also die
                    clock.sleep(runner.POLL)
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            for number in claimed:
                self._store.release(number)
            for end in reversed(ends):
                end()
            self.seconds += clock.perf_counter() - began
        return self

    def _take(self, done: runner.Done, claimed: set[int], progress: Progress | None) -> None:
        """Keep the parts that a runner finishes."""
        for number, columns in done:
            if number not in self._store.finished():
                self._store.put(number, number * self._size, self._rows(number), columns)
            self._store.release(number)
            claimed.discard(number)
            self._tell(progress)

    def _begin(
        self, work: runner.Work, parts: runner.Parts, workers: Any, executor: Any, client: Any, ends: list[Any]
    ) -> runner.Done:
        """The runner that is asked for; ends: what is to be closed."""
        if executor is not None:
            return runner.on_executor(work, parts, executor)
        if client is None:
            return runner.on_threads(work, parts, workers)
        if isinstance(client, str):
            if not hasattr(self, "_client"):
                if client == "local":
                    self._client, cluster = runner.local_cluster(workers)
                    ends.append(cluster.close)
                else:
                    self._client = runner.connected(client)
                ends.append(self._client.close)
                ends.append(lambda: delattr(self, "_client"))
            return runner.on_cluster(work, parts, self._client)
        return runner.on_cluster(work, parts, runner.connected(client))

    def _open(self, path: str | Path | None, size: int | None) -> None:
        """Open the place of the parts, and find their size."""
        if path is not None and self._store.place != str(Path(path)):
            self._store, self._size = Folder(path), 0
        if self._size:
            return
        name = self._task.mechanism.name
        shapes = {label: list(shape) for label, shape in self._task.shapes().items() if shape}
        about = {"name": name, "runs": len(self), "seed": self.sample.seed, "shapes": shapes}
        known = isinstance(self._store, Folder) and (self._store.path / "study.json").exists()
        own = size or (1 if known else self._measured())
        self._size = self._store.open({**about, "digests": self._digests()}, own)

    def _digests(self) -> dict[str, str]:
        """Of model, values, outputs, task and version."""
        version = sys.modules["cardan"].__version__
        return {**self._task.digests(), "values": digest(dict(self.values)), "version": version}

    def _measured(self) -> int:
        """Runs in a part, by the time of some of them."""
        if len(self) <= TRIALS:
            return 1
        chosen = np.linspace(0, len(self) - 1, TRIALS).astype(int)
        if self._task.kind == "assemble":
            chosen = np.linspace(0, len(self) - 1, min(len(self), 1000)).astype(int)
        rows = {name: own[chosen] for name, own in self.values.items()}
        self._task.run({name: own[:1] for name, own in rows.items()})  # kernels are loaded
        began = clock.perf_counter()
        self._task.run(rows)
        taken = (clock.perf_counter() - began) / len(chosen)
        return int(min(max(1.0, SECONDS / taken), MOST_RUNS, len(self)))

    @property
    def parts(self) -> int:
        """Number of parts; 0 before the first run."""
        return -(-len(self) // self._size) if self._size else 0

    @property
    def path(self) -> str:
        """The folder of the parts; "" for the memory of this process."""
        return self._store.place

    def _missing(self) -> list[int]:
        done = self._store.finished()
        return [number for number in range(self.parts) if number not in done]

    def _claimed(self, missing: list[int], claimed: set[int], limit: float | None) -> Iterator[int]:
        """The missing parts that no other client computes, in an order of this client."""
        for number in missing:
            if limit is not None and clock.perf_counter() > limit:
                return
            if not self._store.claim(number):
                continue
            claimed.add(number)
            if number in self._store.finished():  # meanwhile, by another client
                self._store.release(number)
                claimed.discard(number)
                continue
            yield number

    def _rows(self, number: int) -> dict[str, FloatArray]:
        """Values of the runs of a part."""
        first = number * self._size
        return {name: own[first : first + self._size] for name, own in self.values.items()}

    def _tell(self, progress: Progress | None) -> None:
        if progress is not None:
            done = self._store.finished()
            last = self.parts - 1
            progress(len(done) * self._size - (last in done) * (self.parts * self._size - len(self)), len(self))

    # -- reading -------------------------------------------------------------------------------------------------------

    def open(self, path: str | Path) -> Study:
        """Read the finished parts of a folder, without computing; returns the study itself."""
        if not (Path(path) / "study.json").exists():
            raise ModelError(f"there is no study in the folder {str(path)!r}; run(path=…) makes one")
        self._open(path, None)
        return self

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the outputs."""
        return tuple(self.units)

    @property
    def missing(self) -> int:
        """Number of runs that are not computed yet."""
        return len(self) - len(self._runs())

    def _runs(self) -> NDArray[np.int64]:
        """Numbers of the finished runs, ascending."""
        every = [
            np.arange(number * self._size, min((number + 1) * self._size, len(self)))
            for number in sorted(self._store.finished())
        ]
        return np.concatenate(every) if every else np.empty(0, dtype=np.int64)

    def columns(self) -> tuple[NDArray[np.int64], Columns]:
        """Numbers of the finished runs, and what was kept of them."""
        numbers = sorted(self._store.finished())
        if not numbers:
            raise ModelError("no run of this study is finished; call study.run(…)")
        return self._runs(), Columns.joined([self._store.get(number) for number in numbers])

    def __getitem__(self, label: str) -> FloatArray:
        """An output, or the values of a parameter, of the finished runs, shape (n, …)."""
        runs, columns = self.columns()
        if label in columns.outputs:
            return columns.outputs[label]
        if label in self.values:
            return self.values[label][runs]
        raise check.unknown(label, "output or parameter of this study", (*self.labels, *self.values))

    def table(self) -> dict[str, Any]:
        """Columns by title, one row each finished run, for ``pandas.DataFrame(study.table())``.

        The number of the run, the values, the outputs, status and reason.
        """
        runs, columns = self.columns()
        found: dict[str, Any] = {"run": runs} | {name: own[runs] for name, own in self.values.items()}
        for label, array in columns.outputs.items():
            title = f"{label} [{self.units[label]}]" if self.units[label] else label
            if array.ndim == 1:
                found[title] = array
            else:
                found |= {f"{title} {k}": own for k, own in enumerate(array.reshape(len(runs), -1).T)}
        return found | {"status": columns.status, "reason": np.array(columns.reason, dtype=object)}

    @property
    def failed(self) -> list[Failure]:
        """The finished runs that did not reach their end: number, values, status and reason."""
        runs, columns = self.columns()
        return [
            Failure(int(runs[k]), self._of(int(runs[k])), str(columns.status[k]), columns.reason[k])
            for k in np.flatnonzero(~np.isin(columns.status, ENDED)).tolist()
        ]

    def _of(self, run: int) -> dict[str, float]:
        return {name: float(own[run]) for name, own in self.values.items()}

    def again(self, run: int) -> Any:
        """One run once more, by its number, alone and in this process: its whole result, with the same numbers."""
        number = check.count(run, "the number of the run", 0, len(self) - 1)
        return self._task.again(self._of(number))

    def correlation(self) -> dict[str, dict[str, float]]:
        """Of each output that is a number its correlation with each parameter, −1 to 1; NaN where one is constant."""
        return statistics.correlation(*self._done())

    def sensitivity(self) -> dict[str, dict[str, float]]:
        """Of each output that is a number its slope with each parameter, by the least squares of a linear model."""
        return statistics.slopes(*self._done())

    def yield_of(self, limits: Mapping[str, tuple[float | None, float | None]]) -> statistics.Yield:
        """The share of the runs whose outputs are within limits, ``{"max(effort(motor))": (None, 5.0)}``.

        A run that failed is not within.  The interval has a probability of 95 % [Wilson1927].
        """
        _, columns = self.columns()
        single = {label: array for label, array in columns.outputs.items() if array.ndim == 1}
        return statistics.share(single, np.isin(columns.status, ENDED), limits)

    def _done(self) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Values, and outputs that are numbers, of the runs that reached their end."""
        runs, columns = self.columns()
        ok = np.isin(columns.status, ENDED)
        values = {name: own[runs][ok] for name, own in self.values.items()}
        return values, {label: array[ok] for label, array in columns.outputs.items() if array.ndim == 1}

    def plot(self, x: str, y: str) -> Any:
        """A matplotlib figure of two columns, parameters or outputs, with a point for each finished run."""
        return statistics.scatter((x, self[x], self.units.get(x, "")), (y, self[y], self.units.get(y, "")))

    def text(self) -> str:
        """How many runs are finished, how they ended, and the first that failed."""
        finished = self._store.finished() if self._size else set()
        if not finished:
            return f"{len(self)} runs of {', '.join(self.values)}: none finished"
        runs, columns = self.columns()
        words, counts = np.unique(columns.status, return_counts=True)
        ended = ", ".join(
            f"{count} {word}" for word, count in sorted(zip(words, counts, strict=True), key=lambda p: -p[1])
        )
        lines = [f"{len(self)} runs of {', '.join(self.values)}: {len(runs)} finished: {ended}"]
        failed = self.failed
        lines += [f"run {one.run}: {one.status}: {one.reason.splitlines()[0]}" for one in failed[:MOST_LISTED]]
        lines += [f"and {len(failed) - MOST_LISTED} others"] if len(failed) > MOST_LISTED else []
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        return as_html(self.text(), table_of(self.table()) if self._size and self._store.finished() else ((), ()))

    def __repr__(self) -> str:
        return f"<Study {self.text().splitlines()[0]}>"


def study(
    mechanism: Any,
    values: Any,
    outputs: Any,
    state: State | None,
    duration: float | None,
    times: Any,
    tolerance: float,
    options: SimulationOptions | None,
    changes: StudyArguments,
) -> Study:
    """See :meth:`cardan.Mechanism.study`."""
    given = sample_of(values)
    if duration is None and (changes or options is not None):
        names = ", ".join(map(repr, changes)) or "options"
        raise ModelError(f"{names}: options of a simulation, but there is no duration=; give it, or leave them out")
    known = simulation_options(options, changes) if duration is not None else None
    if known is not None and (known.max_seconds is not None or known.progress is not None):
        raise ModelError(
            "options have max_seconds or progress of one run; give run_seconds= and progress= to study.run"
        )
    if known is not None and times is not None:
        known = replace(known, times=tuple(times))
    own, outputs, state = copy.deepcopy((mechanism, outputs, state))
    listed = None if times is None else tuple(check.number(t, "a time") for t in times)
    return Study(Task(own, outputs, state, duration, listed, known, tolerance), given)
