"""Parallel execution of the spring iteration (15) of [NelsonCohen1998], and the growth of its iteration count.

The mechanism is a chain of unit links with ball joints, pinned at both ends.  In units of a link length its Jacobian
satisfies ‖J‖₁‖J‖_∞ ≤ 6.9, so the papers' k = 0.1 is stable for any number of links.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.mechanism import Mechanism
from cardan.solvers import abi
from cardan.solvers.linear import constraints
from cardan.system import check, layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

Vector = tuple[float, float, float]
Clock = Callable[[], None]
Run = Callable[[int, Clock], object]  # runs n iterations and calls the clock after each

GAIN: Final = 0.1  # k
BLOCK_BODIES: Final = 125  # bodies owned by a block: its Jacobian, about 40 kB, fits in the core's cache
LEAST_BLOCKS: Final = 4  # in a share: a smaller share is dominated by call overhead
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
GROWTH_SIZES: Final = (20, 40, 80, 160)
MOST_BODIES: Final = 10_000_000  # a few gigabytes
MOST_THREADS: Final = 256
MOST_GROWTH: Final = 1280  # about a minute: the iterations grow as the square
SECONDS: Final = 2.0  # approximate duration of a timing for each number of threads,
ROUNDS: Final = 20  # in interleaved rounds, so that other load affects all of them
MOST_ITERATIONS: Final = 1_000_000
TOLERANCE: Final = 1e-3  # link lengths
STRETCH: Final = 0.95  # ratio of compressed to assembled length
ALONG, ACROSS = 0.6, 0.8  # components of a link in the zigzag


def chain(links: int, *, far: Vector | None = None) -> Mechanism:
    """A zigzag chain with ball joints at (∓½, 0, 0); the first link is pinned at the origin, the last at ``far``."""
    m = Mechanism(f"chain_{links}")
    half = (0.5, 0.0, 0.0)
    end: Any = m.ground.point()
    for k, pose in enumerate(zigzag(links).tolist()):
        body = m.body(f"link_{k + 1}", position=pose[:3], orientation=pose[3:])
        m.spherical(f"ball_{k + 1}", end, body.point((-0.5, 0.0, 0.0)))
        end = body.point(half)
    m.spherical(f"ball_{links + 1}", end, m.ground.point(far_end(links) if far is None else far))
    return m


def far_end(links: int) -> Vector:
    """End point of the zigzag [link lengths]."""
    return ALONG * links, 0.0, -ACROSS if links % 2 else 0.0


def zigzag(links: int) -> FloatArray:
    """r and p of the links of an assembled chain, shape (links, 7)."""
    half = 0.5 * np.arctan2(ACROSS, ALONG)
    poses: FloatArray = np.zeros((links, layout.POSE))
    poses[:, 0] = ALONG * (np.arange(links) + 0.5)
    poses[:, 2] = -0.5 * ACROSS
    poses[:, 3] = np.cos(half)
    poses[::2, 5] = np.sin(half)  # rotation about +y: downwards along +x
    poses[1::2, 5] = -np.sin(half)
    return poses


def scattered(links: int, seed: int) -> FloatArray:
    """The assembled chain with every link moved by up to ± ½ in each direction, at a random orientation."""
    rng = np.random.default_rng(seed)
    poses = zigzag(links)
    poses[:, :3] += rng.uniform(-0.5, 0.5, (links, 3))
    quaternions = rng.standard_normal((links, 4))
    poses[:, 3:] = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    return poses


def compressed(links: int) -> FloatArray:
    """The assembled chain with all x coordinates multiplied by STRETCH, orientations unchanged.

    The ends of two neighbouring links overlap by (1 − STRETCH)·ALONG, at the first pin by half of that.  The gap at the
    far pin is the sum of all, about (1 − STRETCH)·ALONG·links.
    """
    poses = zigzag(links)
    poses[:, 0] *= STRETCH
    return poses


class Springs:
    """The chain divided into blocks; identical blocks share their tables, so memory for tables does not grow.

    ``poses`` [link lengths, 1], shape (links, 7).
    """

    def __init__(self, poses: FloatArray, block_bodies: int = BLOCK_BODIES) -> None:
        self.poses: FloatArray = np.array(poses, dtype=np.float64, order="C")  # a copy, which the iterations change
        if self.poses.ndim != 2 or self.poses.shape[1] != layout.POSE or not len(self.poses):
            raise ModelError(f"poses have the shape {self.poses.shape}; it must be (links, {layout.POSE})")
        self.links = len(self.poses)
        self._other: FloatArray = self.poses.copy()
        kinds: dict[tuple[int, bool, bool], int] = {}
        blocks: list[tuple[int, int]] = []
        for first in range(0, self.links, block_bodies):
            last = min(first + block_bodies, self.links)
            key = (last - first, first > 0, last < self.links)
            blocks.append((kinds.setdefault(key, len(kinds)), first - key[1]))
        self._blocks: IntArray = np.array(blocks, dtype=np.int64).reshape(-1)
        self.block_count = len(blocks)
        self._join([_kind(self.links, *key) for key in kinds])

    def _join(self, kinds: list[dict[str, Any]]) -> None:
        from cardan._jit import address_of
        from cardan.study import _spring as kernel

        table: IntArray = np.zeros((len(kinds), kernel.KIND), dtype=np.int64)
        for at, name in (
            (kernel.INTS, "ints"),
            (kernel.FLOATS, "floats"),
            (kernel.STRUCTURE, "structure"),
            (kernel.SCALES, "scales"),
            (kernel.PULLS, "pulls"),
            (kernel.ORIGIN, "origin"),
        ):
            table[:, at] = [address_of(kind[name]) for kind in kinds]
        for at, name in ((kernel.BODIES, "bodies"), (kernel.OWN_FIRST, "first"), (kernel.OWN_LAST, "last")):
            table[:, at] = [kind[name] for kind in kinds]
        self._kinds = kinds  # the table holds the addresses of their arrays
        self._tables = (kinds[0]["evaluate"], table.reshape(-1), self._blocks)
        self._work = max(kind["work"] for kind in kinds)
        self._kernel: Any = kernel.spring_pass

    def run(self, iterations: int, threads: int = 1, clock: Clock | None = None) -> float:
        """Iterate in place; returns the largest residual [link lengths] before the last step.

        ``clock`` is called after every iteration.
        """
        if threads > 1:
            return self._run_threads(iterations, threads, clock)
        one = self._worker()
        residual = 0.0
        for _ in range(iterations):
            residual = one(0, self.block_count)
            self.poses, self._other = self._other, self.poses
            if clock is not None:
                clock()
        return residual

    def _worker(self) -> Callable[[int, int], float]:
        """A function that iterates blocks first … last − 1 in its own workspace; it returns their largest residual."""
        work, out = np.empty(self._work), np.empty(1)

        def one(first: int, last: int) -> float:
            old, new = self.poses.reshape(-1), self._other.reshape(-1)
            self._kernel(*self._tables, first, last, GAIN, old, new, work, out)
            return float(out[0])

        return one

    def _run_threads(self, iterations: int, threads: int, clock: Clock | None) -> float:
        """Each thread processes its own blocks, then the remaining blocks of the other threads."""
        edges = [k * self.block_count // threads for k in range(threads + 1)]
        shares = [shrinking_shares(first, last) for first, last in pairwise(edges)]
        queues = [deque(own) for own in shares]
        worst = [0.0] * threads

        def swap() -> None:
            self.poses, self._other = self._other, self.poses
            for queue, own in zip(queues, shares, strict=True):
                queue.extend(own)
            if clock is not None:
                clock()

        def job(k: int) -> Callable[[], object]:
            one = self._worker()

            def work() -> None:
                worst[k] = 0.0
                for queue in queues[k:] + queues[:k]:
                    for share in _taken(queue):
                        worst[k] = float(np.maximum(worst[k], one(*share)))  # max() may drop NaN

            return work

        in_step([job(k) for k in range(threads)], iterations, swap)
        return float(np.max(worst))


def in_step(jobs: Sequence[Callable[[], object]], iterations: int, between: Clock) -> None:
    """Run every job once per iteration, each on its own thread; at a barrier after it one thread calls ``between``."""
    failed: list[BaseException] = []
    barrier = threading.Barrier(len(jobs), action=between)

    def work(job: Callable[[], object]) -> None:
        try:
            for _ in range(iterations):
                job()
                barrier.wait()
        except threading.BrokenBarrierError:
            pass  # another thread failed and reports the error, or the caller was interrupted
        except BaseException as error:
            failed.append(error)
            barrier.abort()

    others = [threading.Thread(target=work, args=(job,), daemon=True) for job in jobs]
    for thread in others:
        thread.start()
    try:
        for thread in others:
            while thread.is_alive():
                thread.join(0.05)
    except BaseException:
        barrier.abort()
        for thread in others:
            thread.join()
        raise
    if failed:
        raise failed[0]


def shrinking_shares(first: int, last: int) -> list[tuple[int, int]]:
    """Split first … last − 1 into ranges, each half of the rest; the short last ones let threads finish together.

    A guided schedule, [Polychronopoulos1987], but each thread starts with the same blocks in every iteration, so their
    data stay in its cache.
    """
    edges = [first]
    while edges[-1] < last:
        left = last - edges[-1]
        edges.append(edges[-1] + min(left, max(left // 2, LEAST_BLOCKS)))
    return list(pairwise(edges))


def _taken(queue: deque[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Take the remaining items of a queue one by one; other threads may take some too."""
    while True:
        try:
            yield queue.popleft()
        except IndexError:
            return


def _kind(links: int, own: int, before: bool, after: bool) -> dict[str, Any]:
    """Tables of a block of ``own`` links, with a neighbour before and after them, or else a pin.

    The far end of a neighbour is on a dummy pin: its force moves no link of the block.
    """
    count = own + before + after
    m = chain(count, far=(0.0, 0.0, 0.0) if after else far_end(links))
    system = m.system
    p = formulations.problem(system, "manifold", 1.0)
    first, last = int(before), int(before) + own
    pulls: list[int] = []
    for body in range(first, last):
        mine = list(_pulls(p.structure, body))
        pulls += (len(mine), *(number for pull in mine for number in pull))
    rows, unknowns, size = (int(p.structure[at]) for at in (abi.ROWS, abi.UNKNOWNS, abi.JACOBIAN_SIZE))
    return {
        "evaluate": p.evaluate,
        "ints": p.ints,
        "floats": p.floats,
        "structure": p.structure,
        "scales": p.scales,
        "pulls": np.array(pulls, dtype=np.int64),
        "origin": system.origin,
        "bodies": count,
        "first": first,
        "last": last,
        "work": int(p.structure[abi.WORK]) + 2 * layout.POSE * count + unknowns + rows + size,
    }


def _pulls(structure: IntArray, body: int) -> Iterator[tuple[int, int, int, int]]:
    """ROW, ROWS, first entry and stride in J of every constraint on a body."""
    offsets = structure[structure[abi.OFFSETS] :]
    for row, rows, entry, blocks in constraints(structure):
        widths = (offsets[blocks + 1] - offsets[blocks]).tolist()
        if body in blocks:
            yield row, rows, entry + sum(widths[: blocks.tolist().index(body)]), sum(widths)


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one iteration [s] by the number of threads: the minimum (least disturbed) and the median.

    ``separate``: speed-up of independent chains, one per thread, which share no data.  It is the speed-up that the
    cores can give to this work at present.
    """

    links: int
    seconds: dict[int, float]
    medians: dict[int, float]
    separate: float
    alone: float  # [s], one of those chains on one thread, with no other running

    def speed_up(self, threads: int) -> float:
        return self.seconds[1] / self.seconds[threads]

    def constancy(self, threads: int) -> float:
        """Ratio of the iteration times: ``threads`` times as many bodies on ``threads`` threads, against one thread."""
        return self.seconds[threads] / self.alone

    def median_speed_up(self, threads: int) -> float:
        return self.medians[1] / self.medians[threads]


@dataclass(frozen=True, slots=True)
class Growth:
    """Iterations to the tolerance, from scattered links and from a compressed chain."""

    links: int
    scattered: int
    compressed: int


def check_inputs(sizes: Sequence[Any], threads: Sequence[Any], seconds: Any, largest: Any = None) -> None:
    """Raise ModelError for invalid inputs."""
    for values, what, most in (
        (sizes, "a number of bodies", MOST_BODIES),
        (threads, "a number of threads", MOST_THREADS),
    ):
        if not values:
            raise ModelError(f"there is nothing to do: give {what}")
        for value in values:
            check.count(value, what, 1, most)
    check.positive(seconds, "the time of a measurement [s]")
    if largest is not None:
        check.count(largest, "the longest chain whose iterations are counted", GROWTH_SIZES[-1], MOST_GROWTH)


def measure(links: int, threads: int = 2, *, seconds: float = SECONDS) -> Timing:
    """Time of an iteration on one thread, on ``threads`` threads, and of ``threads`` separate shorter chains."""
    springs = Springs(scattered(links, 0))
    chains = [Springs(scattered(max(1, links // threads), k)) for k in range(threads)]
    runs: dict[str, Run] = {
        "one": lambda count, clock: springs.run(count, 1, clock),
        "several": lambda count, clock: springs.run(count, threads, clock),
        "alone": lambda count, clock: chains[0].run(count, 1, clock),
        "separate": lambda count, clock: in_step([partial(chain.run, 1) for chain in chains], count, clock),
    }
    iterations = {name: _iterations_in(run, seconds / ROUNDS) for name, run in runs.items()}
    laps: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            laps[name] += _laps(run, iterations[name])
    least = {name: min(values) for name, values in laps.items()}
    median = {name: statistics.median(values) for name, values in laps.items()}
    return Timing(
        links,
        {threads: least["several"], 1: least["one"]},
        {threads: median["several"], 1: median["one"]},
        threads * least["alone"] / least["separate"],
        least["alone"],
    )


def _laps(run: Run, iterations: int) -> list[float]:
    """Times [s] of ``iterations`` iterations after a first one, which is omitted since it includes starting threads."""
    marks: list[float] = []
    run(iterations + 1, lambda: marks.append(time.perf_counter()))
    return [after - before for before, after in pairwise(marks)]


def _iterations_in(run: Run, seconds: float) -> int:
    """Number of iterations in about ``seconds``, at least one."""
    run(1, lambda: None)
    return max(1, int(seconds / min(_laps(run, 2))))


def growth(links: int, *, tolerance: float = TOLERANCE) -> Growth:
    """Iterations until every joint gap is within the tolerance [link lengths]."""
    return Growth(links, _iterations(scattered(links, 0), tolerance), _iterations(compressed(links), tolerance))


def growth_sizes(largest: int) -> tuple[int, ...]:
    """Numbers of links, doubled from one to the next, up to ``largest``."""
    sizes = list(GROWTH_SIZES)
    while 2 * sizes[-1] <= largest:
        sizes.append(2 * sizes[-1])
    return tuple(sizes)


def exponent(sizes: Sequence[int], counts: Sequence[float]) -> float:
    """x of counts ∝ sizesˣ, from the first and the last."""
    return float(np.log(counts[-1] / counts[0]) / np.log(sizes[-1] / sizes[0]))


def _iterations(poses: FloatArray, tolerance: float) -> int:
    springs = Springs(poses)
    for count in range(MOST_ITERATIONS):
        if springs.run(1) <= tolerance:
            return count
    return MOST_ITERATIONS
