"""How the spring iteration (15) of [NelsonCohen1998] shares its work among cores, and what its constant time means.

The mechanism is a chain of unit links on ball joints, pinned at both ends.  Measured in link lengths its J obeys
‖J‖₁‖J‖_∞ ≤ 6.9, so that the papers' k = 0.1 lies within the bound of stability whatever the number of links.
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
from cardan.system import check, layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

Vector = tuple[float, float, float]
Clock = Callable[[], None]
Run = Callable[[int, Clock], object]  # does so many iterations, and calls the clock after each

GAIN: Final = 0.1  # k
BLOCK_BODIES: Final = 125  # owned by a block: its Jacobian, some 40 kB, stays near the core
LEAST_BLOCKS: Final = 4  # in a share: less is not worth the call
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
GROWTH_SIZES: Final = (20, 40, 80, 160)
MOST_BODIES: Final = 10_000_000  # some gigabytes
MOST_THREADS: Final = 256
MOST_GROWTH: Final = 1280  # a minute: the iterations grow as the square
SECONDS: Final = 2.0  # a timing takes about so long, on each number of threads,
ROUNDS: Final = 20  # in so many rounds that take turns, so that a busy spell hits them all
MOST_ITERATIONS: Final = 1_000_000
TOLERANCE: Final = 1e-3  # link lengths
STRETCH: Final = 0.95  # of the way to the far pin that the chain reaches, in the start that all of it must correct
ALONG, ACROSS = 0.6, 0.8  # of a link in the zig-zag


def chain(links: int, *, far: Vector | None = None) -> Mechanism:
    """Links with ball joints at (∓½, 0, 0), zig-zag, the first pinned at the origin, the last at ``far`` or its end."""
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
    """Where the zig-zag ends [link lengths]."""
    return ALONG * links, 0.0, -ACROSS if links % 2 else 0.0


def zigzag(links: int) -> FloatArray:
    """r and p of the links of an assembled chain, shape (links, 7)."""
    half = 0.5 * np.arctan2(ACROSS, ALONG)
    poses: FloatArray = np.zeros((links, layout.POSE))
    poses[:, 0] = ALONG * (np.arange(links) + 0.5)
    poses[:, 2] = -0.5 * ACROSS
    poses[:, 3] = np.cos(half)
    poses[::2, 5] = np.sin(half)  # down along +x: about +y
    poses[1::2, 5] = -np.sin(half)
    return poses


def scattered(links: int, seed: int) -> FloatArray:
    """The assembled chain with every link moved by up to ± ½ in each direction and turned anyhow."""
    rng = np.random.default_rng(seed)
    poses = zigzag(links)
    poses[:, :3] += rng.uniform(-0.5, 0.5, (links, 3))
    quaternions = rng.standard_normal((links, 4))
    poses[:, 3:] = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    return poses


def compressed(links: int) -> FloatArray:
    """The links of the assembled chain pushed together along x, to STRETCH of their places, and not turned.

    Between two links the ends overlap by (1 − STRETCH)·ALONG, at the first pin by half of that; the far pin is missed
    by all of them together, some (1 − STRETCH)·ALONG·links.
    """
    poses = zigzag(links)
    poses[:, 0] *= STRETCH
    return poses


class Springs:
    """The chain cut into blocks; identical blocks share their tables, so that a million links need no more than these.

    ``poses`` [link lengths, 1], shape (links, 7).
    """

    def __init__(self, poses: FloatArray, block_bodies: int = BLOCK_BODIES) -> None:
        self.poses: FloatArray = np.array(poses, dtype=np.float64, order="C")  # a copy, which is moved
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
        """What does the blocks first … last − 1, in a workspace of its own, and returns their largest residual."""
        work, out = np.empty(self._work), np.empty(1)

        def one(first: int, last: int) -> float:
            old, new = self.poses.reshape(-1), self._other.reshape(-1)
            self._kernel(*self._tables, first, last, GAIN, old, new, work, out)
            return float(out[0])

        return one

    def _run_threads(self, iterations: int, threads: int, clock: Clock | None) -> float:
        """Every thread does its own blocks, then what is left of its neighbours'."""
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
                        worst[k] = float(np.maximum(worst[k], one(*share)))  # max may drop NaN

            return work

        in_step([job(k) for k in range(threads)], iterations, swap)
        return float(np.max(worst))


def in_step(jobs: Sequence[Callable[[], object]], iterations: int, between: Clock) -> None:
    """Do every job once in each iteration, on a thread of its own; all meet after it, and one calls ``between``."""
    failed: list[BaseException] = []
    barrier = threading.Barrier(len(jobs), action=between)

    def work(job: Callable[[], object]) -> None:
        try:
            for _ in range(iterations):
                job()
                barrier.wait()
        except threading.BrokenBarrierError:
            pass  # another thread has failed, and says why; or the caller was interrupted
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
    """Ranges that make up first … last − 1, each half of the rest: the short ones at the end let threads end together.

    A guided schedule, [Polychronopoulos1987], but each thread begins with blocks that are its own in every iteration,
    and so near its core.
    """
    edges = [first]
    while edges[-1] < last:
        left = last - edges[-1]
        edges.append(edges[-1] + min(left, max(left // 2, LEAST_BLOCKS)))
    return list(pairwise(edges))


def _taken(queue: deque[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What is left in a queue, taken one by one; other threads may take some too."""
    while True:
        try:
            yield queue.popleft()
        except IndexError:
            return


def _kind(links: int, own: int, before: bool, after: bool) -> dict[str, Any]:
    """Tables of a block that owns so many links, with a neighbour before and after them, or else a pin.

    A neighbour's far end hangs on a pin of no importance: what pulls there moves no link of the block.
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
    """ROW, ROWS, first entry and stride in J of every constraint that touches a body."""
    at = abi.HEADER
    offsets = int(structure[abi.OFFSETS])
    for _ in range(int(structure[abi.CONSTRAINTS])):
        row, rows, entry, slots = (int(x) for x in structure[at : at + 4])
        blocks = structure[at + 4 : at + 4 + slots].tolist()
        widths = [int(structure[offsets + b + 1] - structure[offsets + b]) for b in blocks]
        if body in blocks:
            yield row, rows, entry + sum(widths[: blocks.index(body)]), sum(widths)
        at += 4 + slots


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one iteration [s] by the number of threads: the least, which nothing disturbed, and the median.

    ``separate``: how many times as much so many chains get done that share nothing, each on a thread of its own.  It is
    what the cores have to give to this work, at this time.
    """

    links: int
    seconds: dict[int, float]
    medians: dict[int, float]
    separate: float
    alone: float  # [s], of one of those chains while the others rest

    def speed_up(self, threads: int) -> float:
        return self.seconds[1] / self.seconds[threads]

    def constancy(self, threads: int) -> float:
        """How many times as long an iteration takes with so many times the bodies on so many threads."""
        return self.seconds[threads] / self.alone

    def median_speed_up(self, threads: int) -> float:
        return self.medians[1] / self.medians[threads]


@dataclass(frozen=True, slots=True)
class Growth:
    """Iterations to the tolerance, from links scattered about their places and from a chain that is too short."""

    links: int
    scattered: int
    compressed: int


def check_inputs(sizes: Sequence[Any], threads: Sequence[Any], seconds: Any, largest: Any = None) -> None:
    """Raise ModelError for what cannot be run; before any work."""
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
    """Time of an iteration on one thread, on so many, and of as many separate chains of a share of the links each."""
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
    """Times [s] between the ends of so many iterations and one before them: the start of threads does not count."""
    marks: list[float] = []
    run(iterations + 1, lambda: marks.append(time.perf_counter()))
    return [after - before for before, after in pairwise(marks)]


def _iterations_in(run: Run, seconds: float) -> int:
    """Iterations in about so many seconds, one at least."""
    run(1, lambda: None)
    return max(1, int(seconds / min(_laps(run, 2))))


def growth(links: int, *, tolerance: float = TOLERANCE) -> Growth:
    """Iterations until every joint is closed to the tolerance [link lengths]."""
    return Growth(links, _iterations(scattered(links, 0), tolerance), _iterations(compressed(links), tolerance))


def growth_sizes(largest: int) -> tuple[int, ...]:
    """Numbers of links, each twice the one before, up to the largest asked for."""
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
