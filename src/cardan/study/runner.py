"""Who computes the parts of a study: threads of this process, an executor, or workers of Dask.

A runner gets the numbers of the parts that are missing, and yields each with its columns when it is finished.  A part
whose process ends is divided into its runs, which are then computed one at a time: so the run that ends its process
is named, and the others have their results.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from cardan.errors import ModelError
from cardan.study.task import Columns, Task, forget, keep, pack, run_part
from cardan.system.state import FloatArray

AHEAD: Final = 3  # parts for each worker that are under way or wait for it
DEATHS: Final = 3  # of workers on one part or run
POLL: Final = 0.2  # [s] between two looks at what others have finished
LOOK: Final = 1.0  # [s] between two looks at the workers of a cluster
JOINING: Final = 20.0  # [s] without workers, until a cluster is given up
MOST_CLUSTERS: Final = 5  # on this machine, one after another, where all workers ended and could not be replaced
DIED: Final = f"its process ended {DEATHS} times while it computed this run alone"


class NoWorkersError(ModelError):
    """A cluster has no workers left."""

    def __init__(self) -> None:
        super().__init__(
            f"the cluster has had no workers for {JOINING:g} s; finished parts are kept: start workers, and run the "
            "study again"
        )


class Work(NamedTuple):
    """What a runner computes: a task, and the values of a part by its number.  each [s]: longest time of a run."""

    task: Task
    rows: Callable[[int], Mapping[str, FloatArray]]
    each: float | None
    key: str


Parts = Iterator[int]  # numbers of parts that this client has claimed
Done = Iterator[tuple[int, Columns]]


def on_threads(work: Work, parts: Parts, workers: int | None) -> Done:
    """One part after the other, the runs of each on all threads."""
    from cardan.analysis.chunks import worker_count

    count = worker_count(workers)
    for number in parts:
        yield number, work.task.run(work.rows(number), count, work.each)


def on_executor(work: Work, parts: Parts, executor: Any) -> Done:
    """By an executor of concurrent.futures, or one like it."""
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait

    packed = pack(work.task)
    room = AHEAD * (getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
    pending: dict[Any, int] = {}
    try:
        while True:
            while len(pending) < room and (number := next(parts, None)) is not None:
                pending[executor.submit(run_part, work.key, work.rows(number), work.each, packed)] = number
            if not pending:
                return
            finished, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                number, columns = pending[future], future.result()  # which raises before the part is forgotten
                del pending[future]
                yield number, columns
    except BrokenExecutor as error:
        raise ModelError(
            f"a process of the executor ended while it computed one of the parts {sorted(pending.values())}: {error}; "
            "finished parts are kept; client='local' finds out which run ends it"
        ) from None
    finally:
        for future in pending:
            future.cancel()


def on_cluster(work: Work, parts: Parts, client: Any) -> Done:
    """By the workers of a Dask client; each gets the packed model once, also one that joins later."""
    plugin = _register(work, client)
    pending: dict[str, tuple[Any, int]] = {}

    def submit(number: int) -> None:
        future = client.submit(
            run_part, work.key, work.rows(number), work.each, key=f"{work.key}-{number}", pure=False, retries=0
        )
        pending[future.key] = future, number

    try:
        while True:
            room = AHEAD * max(1, len(client.nthreads()))
            while len(pending) < room and (number := next(parts, None)) is not None:
                submit(number)
            if not pending:
                return
            future = _first(client, [future for future, _ in pending.values()])
            _, number = pending.pop(future.key)
            yield number, _result(work, client, future, number)
            future.release()
    finally:
        for future, _ in pending.values():
            future.cancel()
        _unregister(work, client, plugin)


def _first(client: Any, futures: list[Any]) -> Any:
    """The first of some futures that ends; NoWorkersError if the cluster has no workers, and none joins."""
    from distributed import wait

    seen = clock.perf_counter()
    while True:
        with suppress(TimeoutError):
            return next(iter(wait(futures, timeout=LOOK, return_when="FIRST_COMPLETED").done))
        if client.status != "running":
            raise ModelError(
                f"the client is {client.status}; finished parts are kept: connect, and run the study again"
            )
        if client.nthreads():
            seen = clock.perf_counter()
        elif clock.perf_counter() - seen > JOINING:
            raise NoWorkersError


def _register(work: Work, client: Any) -> Any:
    """Send the packed model to all workers, and to those that join."""
    from distributed.diagnostics.plugin import WorkerPlugin

    if client.status != "running":
        raise ModelError(f"the client is {client.status}; give one that is connected, or client='local'")

    plugin = _plugin(WorkerPlugin, work.key, pack(work.task))
    client.register_plugin(plugin, name=plugin.name)
    return plugin


def _plugin(base: type, key: str, packed: bytes) -> Any:
    """A plugin of workers that keeps the packed model; made here, so that Dask is imported only where it is used."""

    class Model(base):  # type: ignore[misc]  # a base that is given
        name = f"cardan-{key}"

        def setup(self, worker: Any) -> None:
            keep(key, packed)

        def teardown(self, worker: Any) -> None:
            forget(key)

    return Model()


def _unregister(work: Work, client: Any, plugin: Any) -> None:
    if client.status == "running":
        client.unregister_worker_plugin(plugin.name)


def _result(work: Work, client: Any, future: Any, number: int) -> Columns:
    """Columns of a part; of its runs one by one, if workers died on it."""
    from distributed.scheduler import KilledWorker

    if future.status == "finished":
        found: Columns = future.result()
        return found
    error = future.exception() if future.status == "error" else None
    if not isinstance(error, KilledWorker):
        if error is not None:
            raise error
        raise ModelError(f"part {number} was {future.status} by the scheduler; run the study again")
    rows = work.rows(number)
    count = len(next(iter(rows.values())))
    every = []
    for k in range(count):
        alone = {name: own[k : k + 1] for name, own in rows.items()}
        one = client.submit(run_part, work.key, alone, work.each, key=f"{work.key}-{number}-{k}", pure=False)
        _first(client, [one])
        error = one.exception() if one.status == "error" else None
        if error is not None and not isinstance(error, KilledWorker):
            raise error
        every.append(one.result() if error is None else work.task.killed(1, DIED))
        one.release()
    return Columns.joined(every)


def local_cluster(workers: int | None) -> tuple[Any, Any]:
    """A client and a cluster of processes on this machine, with one thread each; the caller closes both."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise ModelError("a cluster needs Dask; install it with: pip install 'cardan[study]'") from None
    from cardan.analysis.chunks import worker_count

    with dask.config.set({"distributed.scheduler.allowed-failures": DEATHS - 1}):
        cluster = LocalCluster(
            n_workers=worker_count(workers),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        )
    return Client(cluster), cluster


def connected(client: Any) -> Any:
    """A client of Dask, checked; an address of a scheduler is connected to."""
    try:
        from distributed import Client
    except ImportError:
        raise ModelError("a cluster needs Dask; install it with: pip install 'cardan[study]'") from None
    if isinstance(client, str):
        try:
            return Client(client, timeout=JOINING)
        except (OSError, ValueError) as error:
            raise ModelError(f"there is no scheduler at {client!r}: {error}") from None
    if not isinstance(client, Client):
        raise ModelError(f"client is {client!r:.80}; it must be a dask.distributed.Client, an address, or 'local'")
    return client
