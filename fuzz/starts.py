"""Solvable cases from several starts each, in one call per case: nothing may be called a conflict or be left unsolved.

The first start is that of the case; the others are drawn about its reference pose: one anywhere, one far off.  With
``uniform``, all starts are anywhere.  Of a start that is not solved, the report must not say that the data are rounded.
"""

from __future__ import annotations

import json
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

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
NEARLY = "nearly fits"  # kind of a failure: the report says so, although there is a solution
MOST_SECONDS = 10.0  # for all starts of a case
SOLVED_BAR = 0.9995
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


def starts_of(case, count, uniform=False):
    """{body: [position, quaternion]} of each start."""
    rng = np.random.default_rng([case.seed, FIRST_INDEX + case.index, 1])
    first = case.start or {b.name: [b.position, b.orientation] for b in case.bodies}
    poses = {name: (np.array(p), matrix(q)) for name, (p, q) in case.reference.items()}
    at = poses_of(case.reference)
    cloud = np.array([*(world(e, at)[0] for j in case.joints for e in (j.a, j.b)), *(p for p, _ in poses.values())])
    size, center = float(np.ptp(cloud, axis=0).max()) or 1.0, np.mean([p for p, _ in poses.values()], axis=0)
    made = [] if uniform else [first]
    for k in range(count - len(made)):
        start = {}
        for name, (p, R) in poses.items():
            R_s, p_s = disturbed(rng, "uniform" if uniform else KINDS[k % len(KINDS)], R, p, center, size)
            start[name] = [p_s.tolist(), quaternion(R_s).tolist()]
        made.append(start)
    return made


def judge_starts(case, count, uniform=False, **options):
    """Assemble the case from every start and check the poses by the independent judge."""
    found = Found(case.index, case.family, case.variant)
    starts = starts_of(case, count, uniform)
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
            what = f"{status} after {found.restarts[k]} restarts, residual {result.residual[k]:.3g}"
            found.failures.append((k, kind, what))
            said = m.assemble({name: tuple(pose) for name, pose in starts[k].items()}, **options).text()
            if "nearly fit" in said:
                found.failures.append((k, NEARLY, said))
    if found.failures and (by := relative_miss(case, poses_of(case.reference))) > 1e-10:
        found.failures.append((0, SELF, f"the reference pose has the error {by:.3g}"))
    return found


def run_case(seed, index, starts, uniform=False):
    """Generate one case and assemble it from several starts."""
    return judge_starts(generate(seed, index), starts, uniform)


def lost(seed, index, kind, what, seconds):
    """The result of a case whose process ended or was killed."""
    case = generate(seed, index)
    return Found(index, case.family, case.variant, failures=[(0, kind, what)], seconds=seconds)


class Report:
    """The results of all cases so far: counts, and every start that was not solved."""

    def __init__(self, seed, starts):
        self.seed, self.starts = seed, starts
        self.seconds = 0.0
        self.outcomes: list[Found] = []
        self.failed: list[Found] = []

    def add(self, found):
        self.outcomes.append(found)
        if found.failures:
            self.failed.append(found)

    def count(self, *kinds):
        """Number of failures of these kinds."""
        return sum(kind in kinds for found in self.failed for _, kind, _ in found.failures)

    @property
    def hard(self):
        return [found for found in self.failed if any(kind != UNSOLVED for _, kind, _ in found.failures)]

    @property
    def unsolved(self):
        return [failure for found in self.failed for failure in found.failures if failure[1] == UNSOLVED]

    @property
    def solved_share(self):
        total = sum(len(found.statuses) for found in self.outcomes)
        return sum(status == "assembled" for found in self.outcomes for status in found.statuses) / max(1, total)

    @property
    def passed(self):
        return not self.hard and self.solved_share >= SOLVED_BAR

    def rows(self):
        """What failed, as plain data: one entry per start."""
        return [
            {
                "index": found.index,
                "family": found.family,
                "variant": found.variant,
                "start": start,
                "kind": kind,
                "what": what,
            }
            for found in sorted(self.failed, key=lambda found: found.index)
            for start, kind, what in found.failures
        ]

    def write(self, path):
        """Write the summary and the list of failures as JSON."""
        kinds = Counter(row["kind"] for row in self.rows())
        data = {
            "seed": self.seed,
            "starts": self.starts,
            "cases": len(self.outcomes),
            "seconds": round(self.seconds, 1),
            "solved": self.solved_share,
            "kinds": dict(kinds),
            "failures": self.rows(),
        }
        Path(path).write_text(json.dumps(data, indent=1), encoding="utf-8")

    def text(self):
        """Table of counts per family, then what failed."""
        lines = ["family          cases   starts  restarted  not solved  conflict  mean ms   max s"]
        for family in FAMILIES:
            own = [found for found in self.outcomes if found.family == family]
            if not own:
                continue
            statuses = Counter(status for found in own for status in found.statuses)
            restarted = sum(number > 0 for found in own for number in found.restarts)
            total = sum(statuses.values())
            times = [found.seconds for found in own]
            lines.append(
                f"{family:13} {len(own):7} {total:8} {restarted:10} {total - statuses['assembled']:11} "
                f"{statuses['conflict']:9} {1e3 * sum(times) / len(times):8.2f} {max(times):7.2f}"
            )
        lines += [
            f"  {row['kind']}: case {row['index']} start {row['start']}: {row['what']}" for row in self.rows()[:40]
        ]
        hard = Counter(kind for found in self.failed for _, kind, _ in found.failures if kind != UNSOLVED)
        lines.append(f"must not happen: {', '.join(f'{kind} {n}' for kind, n in hard.items()) or 'none'}")
        rate = len(self.outcomes) / max(self.seconds, 1e-9)
        lines.append(
            f"{len(self.outcomes)} cases of seed {self.seed} from {self.starts} starts each: "
            f"{100 * self.solved_share:.4f} % solved, {self.seconds:.0f} s, {rate:.0f} cases/s"
        )
        return "\n".join(lines)
