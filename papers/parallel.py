"""Parallel execution of the spring iteration (15) of [NelsonCohen1998], and the growth of its iteration count.

The mechanism is a chain of unit links with ball joints, pinned at both ends.  Lengths are measured in the bodies, here
in links, so the papers' k = 0.1 is stable for any number of links.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from cardan.analysis.options import SpringOptions
from cardan.coordinates import formulations
from cardan.coordinates.parallel_springs import SharedJob, Shares, Tables
from cardan.errors import ModelError
from cardan.mechanism import Mechanism
from cardan.solvers.problem import Budget, Run
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.state import FloatArray

Vector = tuple[float, float, float]
Clock = Callable[[], None]
Timed = Callable[[int, Clock], object]  # runs n iterations and calls the clock after each

GAIN: Final = 0.1  # k
SIZES: Final = (1_000, 10_000, 100_000)
GROWTH_SIZES: Final = (20, 40, 80, 160)
MOST_BODIES: Final = 1_000_000  # a few gigabytes
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


def hinge_chain(links: int) -> Mechanism:
    """The same chain with hinges about y."""
    m = Mechanism(f"hinges_{links}")
    y = (0.0, 1.0, 0.0)
    end = m.ground.frame(z=y)
    for k, pose in enumerate(zigzag(links).tolist()):
        body = m.body(f"link_{k + 1}", position=pose[:3], orientation=pose[3:])
        m.revolute(f"hinge_{k + 1}", end, body.frame((-0.5, 0.0, 0.0), z=y))
        end = body.frame((0.5, 0.0, 0.0), z=y)
    m.revolute(f"hinge_{links + 1}", end, m.ground.frame(far_end(links), z=y))
    return m


def tree(links: int) -> Mechanism:
    """A binary tree of unit links along x with ball joints; the first is pinned at the origin."""
    m = Mechanism(f"tree_{links}")
    ends: list[Any] = [m.ground.point()]
    for k in range(links):
        depth = (k + 1).bit_length() - 1
        body = m.body(f"link_{k + 1}", position=(depth + 0.5, 0.0, 0.0))
        m.spherical(f"ball_{k + 1}", ends[(k + 1) // 2], body.point((-0.5, 0.0, 0.0)))
        ends.append(body.point((0.5, 0.0, 0.0)))
    return m


def iterations(m: Mechanism, seed: int, most: int = 20_000) -> int | None:
    """Spring iterations with the papers' k, to gaps of TOLERANCE, from scattered links; None if ``most`` do not do.

    Every link of the drawn mechanism is moved by up to ± ½ in each direction, at a random orientation.
    """
    rng, state = np.random.default_rng(seed), m.state
    places = state.positions + rng.uniform(-0.5, 0.5, state.positions.shape)
    quaternions = rng.standard_normal(state.quaternions.shape)
    poses = np.hstack([places, quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)])
    start = state.moved({name: (pose[:3], pose[3:]) for name, pose in zip(state.names, poses, strict=True)})
    found = m.assemble(
        start,
        method="gradient",
        spring=SpringOptions(gain=GAIN),
        max_iterations=most,
        tolerance=4.0 * TOLERANCE / m.system.judged_length,  # a quarter of it is aimed at
    )
    return found.iterations if found.ok and found.iterations < most else None


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
    """The spring iteration of :func:`cardan.Mechanism.assemble` on the chain, for a given number of iterations.

    ``poses`` [link lengths, 1], shape (links, 7).
    """

    def __init__(self, poses: FloatArray) -> None:
        poses = np.array(poses, dtype=np.float64, order="C")
        if poses.ndim != 2 or poses.shape[1] != layout.POSE or not len(poses):
            raise ModelError(f"poses have the shape {poses.shape}; it must be (links, {layout.POSE})")
        self.links = len(poses)
        self.system = chain(self.links).system
        self.length = self.system.judged_length
        plain = formulations.problem(self.system, "manifold", self.length)
        self._problem = formulations.with_springs(self.system, "manifold", plain, self.length)
        self._tables = Tables(self.system, self._problem)
        self._q = formulations.to_reference(self.system, poses)
        self._first = self._q.copy()

    @property
    def poses(self) -> FloatArray:
        return formulations.from_reference(self.system, self._q)

    def job(self, threads: int = 1) -> SharedJob:
        """A job with the papers' k."""
        return Shares(self._tables, threads).job(self._problem, {"step_gain": GAIN})

    def run(self, iterations: int, threads: int = 1, clock: Clock | None = None, tolerance: float = 0.0) -> Run:
        """Iterate in place, up to a tolerance on the gap of every joint [link lengths].

        ``clock`` is called after every iteration.
        """
        job = self.job(threads)
        job.clock = clock
        return job.run(self._q, tolerance / self.length, Budget(iterations))

    def repeat(self, iterations: int, threads: int, clock: Clock) -> None:
        """The same from the first poses, which stay as they are."""
        job = self.job(threads)
        job.clock = clock
        job.run(self._first.copy(), 0.0, Budget(iterations))


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
    runs: dict[str, Timed] = {
        "one": lambda count, clock: springs.repeat(count, 1, clock),
        "several": lambda count, clock: springs.repeat(count, threads, clock),
        "alone": lambda count, clock: chains[0].repeat(count, 1, clock),
        "separate": lambda count, clock: _at_once(chains, count, clock),
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


def _at_once(chains: Sequence[Springs], iterations: int, clock: Clock) -> None:
    """Iterate chains that share no data, each on its own thread; the clock is called by the first of them."""
    clocks: list[Clock] = [clock, *[lambda: None] * (len(chains) - 1)]
    with ThreadPoolExecutor(len(chains)) as pool:
        waiting = [pool.submit(chain.repeat, iterations, 1, ticks) for chain, ticks in zip(chains, clocks, strict=True)]
        for future in waiting:
            future.result()


def _laps(run: Timed, iterations: int) -> list[float]:
    """Times [s] of ``iterations`` iterations after a first one, which is omitted since it includes starting threads."""
    marks: list[float] = []
    run(iterations + 1, lambda: marks.append(time.perf_counter()))
    return [after - before for before, after in pairwise(marks)]


def _iterations_in(run: Timed, seconds: float) -> int:
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
    return Springs(poses).run(MOST_ITERATIONS, 1, None, tolerance).iterations
