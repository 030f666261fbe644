"""Work in chunks, on one thread or several, so that Ctrl-C and the progress are handled between chunks.

Kernels release the GIL, so plain threads use all cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from cardan.system import check

Progress = Callable[[int, int], None]  # done, total
Worker = Callable[[int, int], Any]  # processes the items first … last − 1

MOST_WORKERS = 1024  # threads, all created at once
POLL_INTERVAL = 0.05  # [s] between two checks of the workers by the waiting thread


def core_count() -> int:
    """Number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count(workers: Any) -> int:
    """The number of threads, checked; None: one per core."""
    if workers is None:
        return core_count()
    return check.count(workers, "workers", 1, MOST_WORKERS, instead="without it all cores are used")


def run_chunks(
    count: int,
    size: int,
    make_worker: Callable[[threading.Event], Worker],
    workers: int,
    progress: Progress | None = None,
) -> None:
    """Process the items 0 … count − 1 in chunks of ``size``; every thread makes its own worker, with its workspace.

    A single worker runs in the calling thread.  After an exception in a worker, or Ctrl-C, all workers stop at the end
    of their current chunk; a worker with long chunks should regularly check the event that it was made with.
    """
    stop = threading.Event()
    if workers == 1 or count <= size:
        worker = make_worker(stop)
        for first in range(0, count, size):
            worker(first, min(first + size, count))
            if progress is not None:
                progress(min(first + size, count), count)
        return
    from concurrent.futures import ThreadPoolExecutor, wait

    queue = iter(range(0, count, size))
    lock = threading.Lock()
    done = [0]

    def work() -> None:
        worker = make_worker(stop)
        while not stop.is_set():
            with lock:
                first = next(queue, None)
            if first is None:
                return
            last = min(first + size, count)
            worker(first, last)
            with lock:
                done[0] += last - first

    with ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(work) for _ in range(min(workers, -(-count // size)))}
        try:
            while waiting:
                finished, waiting = wait(waiting, POLL_INTERVAL)
                for future in finished:
                    future.result()
                if progress is not None:
                    progress(done[0], count)
        finally:
            stop.set()
