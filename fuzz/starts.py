"""Solvable cases from several starts each, in one call per case: nothing may be called a conflict or be left unsolved.

The first start is that of the case; the others are drawn about its reference pose: one anywhere, one far off.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field

import numpy as np

from fuzz import consistent, crowded, disconnected, redundant
from fuzz.case import EXPECT_OK, build
from fuzz.geometry import matrix, quaternion
from fuzz.judge import (
    CRASH,
    FALSE_CONFLICT,
    FALSE_OK,
    HANG,
    NOT_FINITE,
    RELATIVE,
    SELF,
    UNSOLVED,
    misses,
    poses_of,
    relative_miss,
    relative_misses,
    world,
)
from fuzz.sketch import disturbed

# Families of solvable cases, with their shares.
FAMILIES = {
    "consistent": (consistent.draw, 0.45),
    "redundant": (redundant.draw, 0.25),
    "crowded": (crowded.draw, 0.2),
    "disconnected": (disconnected.draw, 0.1),
}
KINDS = ("uniform", "bad")  # of the starts after the first, in turn
MOST_SECONDS = 10.0  # for all starts of a case
FIRST_INDEX = 1_000_000_000  # added to the index, so that these cases are others than those of fuzz.generate


@dataclass
class Found:
    """The result of one case: its statuses, and the failures as (start, kind, description)."""

    index: int
    family: str
    variant: str
    statuses: list[str] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    seconds: float = 0.0


def generate(seed, index):
    """The solvable case with the given seed and index."""
    rng = np.random.default_rng([seed, FIRST_INDEX + index])
    names = list(FAMILIES)
    family = names[rng.choice(len(names), p=[FAMILIES[n][1] for n in names])]
    case = FAMILIES[family][0](rng)
    while case.expect != EXPECT_OK or case.options:
        case = FAMILIES[family][0](rng)
    case.seed, case.index = seed, index
    return case


def starts_of(case, count):
    """{body: [position, quaternion]} of each start."""
    rng = np.random.default_rng([case.seed, FIRST_INDEX + case.index, 1])
    first = case.start or {b.name: [b.position, b.orientation] for b in case.bodies}
    poses = {name: (np.array(p), matrix(q)) for name, (p, q) in case.reference.items()}
    at = poses_of(case.reference)
    cloud = np.array([*(world(e, at)[0] for j in case.joints for e in (j.a, j.b)), *(p for p, _ in poses.values())])
    size, center = float(np.ptp(cloud, axis=0).max()) or 1.0, np.mean([p for p, _ in poses.values()], axis=0)
    made = [first]
    for k in range(count - 1):
        start = {}
        for name, (p, R) in poses.items():
            R_s, p_s = disturbed(rng, KINDS[k % len(KINDS)], R, p, center, size)
            start[name] = [p_s.tolist(), quaternion(R_s).tolist()]
        made.append(start)
    return made


def judge_starts(case, count, **options):
    """Assemble the case from every start and check the poses by the independent judge."""
    found = Found(case.index, case.family, case.variant)
    by = relative_miss(case, poses_of(case.reference))
    if by > 1e-10:
        found.failures.append((0, SELF, f"the reference pose has the error {by:.3g}"))
        return found
    starts = starts_of(case, count)
    names = [b.name for b in case.bodies]
    table = np.array([[[*s[name][0], *s[name][1]] for name in names] for s in starts])
    began = time.perf_counter()
    try:
        m = build(case)
        table = table[:, [names.index(name) for name in m.system.names]]
        result = m.assemble_many(table, workers=1, **options)
    except Exception as error:
        found.failures.append((0, CRASH, f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"))
        return found
    found.seconds = time.perf_counter() - began
    if found.seconds > MOST_SECONDS:
        found.failures.append((0, HANG, f"{found.seconds:.1f} s"))
    found.statuses, found.restarts = result.status.tolist(), result.restarts.tolist()
    for k, status in enumerate(found.statuses):
        state = result.state(k)
        if not np.isfinite(state.coordinates).all():
            found.failures.append((k, NOT_FINITE, f"{status}: {state.coordinates.tolist()}"))
        elif result.ok[k]:
            poses = poses_of(state)
            error = max(relative_misses(case, poses, misses(case, poses, state.angles)).values(), default=0.0)
            if error > RELATIVE:
                found.failures.append((k, FALSE_OK, f"relative error {error:.3g}"))
        else:
            kind = FALSE_CONFLICT if status == "conflict" else UNSOLVED
            found.failures.append((k, kind, f"{status} after {found.restarts[k]} restarts: {result.residual[k]:.3g}"))
    return found
