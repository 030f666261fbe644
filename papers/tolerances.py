"""Tolerances of a mechanism over a motion: linear figures and a Monte Carlo of re-assembled mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import cardan as cd
from cardan.analysis.chunks import Progress
from cardan.analysis.sensitivity import Tolerances
from cardan.cli import figures
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check
from cardan.system.state import FloatArray
from gallery import rsur, slider_crank

POSES = 24  # of a turn
SAMPLES = 10_000  # in each pose
MOST_POSES, MOST_SAMPLES = 10_000, 10_000_000

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Subject:
    """A mechanism with parameters, the output that is examined, and the tolerances; time is the angle of its crank."""

    build: Callable[[], cd.Mechanism]
    output: str
    tolerances: dict[str, float]
    turn: tuple[float, float]  # [rad] first and last angle of the crank


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The result: an angle of the crank [rad] and tolerances for each pose."""

    name: str
    output: str
    unit: str
    angles: FloatArray
    found: tuple[Tolerances, ...]
    samples: int
    seed: int

    def column(self, name: str) -> FloatArray:
        """A figure of the output in every pose."""
        return np.array([getattr(one, name)[0] for one in self.found])

    def contributions(self) -> dict[str, float]:
        """Mean share of each parameter over the poses, the largest first."""
        shares = np.mean([one.contributions[0] for one in self.found], axis=0)
        pairs = zip(self.found[0].sensitivity.parameters, shares.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: -pair[1]))

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, one row for each pose."""
        names = self.found[0].sensitivity.parameters
        return [
            {
                "angle": float(angle),
                "value": float(one.sensitivity.values[0]),
                "worst": float(one.worst[0]),
                "rss": float(one.rss[0]),
                "monte_carlo": float(one.spread[0]),
                "failed": one.failed,
                **{f"share_{name}": float(one.contributions[0, k]) for k, name in enumerate(names)},
            }
            for angle, one in zip(self.angles, self.found, strict=True)
        ]


def _follow(t: Any) -> Any:
    return t


def _slider_crank() -> cd.Mechanism:
    m = cd.Mechanism("slider_crank")
    r, rod = m.parameter("crank", slider_crank.CRANK), m.parameter("rod", slider_crank.ROD)
    offset = m.parameter("offset", slider_crank.OFFSET)
    a, b, c = m.body("crank body"), m.body("rod body", position=(0.2, 0, 0)), m.body("slider", position=(0.6, 0.05, 0))
    hinge = m.revolute("A", m.ground.frame(z=Z, x=X), a.frame(z=Z, x=X))
    m.revolute("B", a.frame((r, 0, 0), z=Z), b.frame(z=Z))
    m.revolute("C", b.frame((rod, 0, 0), z=Z), c.frame(z=Z))
    m.prismatic("slide", m.ground.frame((0, offset, 0), z=X, x=Z), c.frame(z=X, x=Z))
    m.drive("motor", hinge, _follow)
    return m


def _rsur() -> cd.Mechanism:
    m = cd.Mechanism("rsur")
    lengths = {"crank": rsur.CRANK, "coupler": rsur.COUPLER, "rocker": rsur.ROCKER}
    r, rod, rocker = (m.parameter(name, value) for name, value in lengths.items())
    dx, dy, dz = (m.parameter(f"D {axis}", value) for axis, value in zip("xyz", rsur.D, strict=True))
    a = m.body("crank body")
    b = m.body("coupler body", position=(0.8, 0.6, 0.0), orientation=euler.from_axis_angle(Y, -0.8))
    c = m.body("rocker body", position=rsur.D, orientation=euler.from_zxz((0.0, -1.3, -1.4)))
    hinge = m.revolute("A", m.ground.frame(z=Z, x=X), a.frame(z=Z, x=X))
    m.spherical("B", a.point((r, 0, 0)), b.point())
    m.universal("C", b.frame((rod, 0, 0), z=Z), c.frame((rocker, 0, 0), z=Z))
    m.revolute("D", m.ground.frame((dx, dy, dz), z=rsur.ROCKER_AXIS, x=X), c.frame(z=Z, x=X))
    m.drive("motor", hinge, _follow)
    return m


SUBJECTS: Final[dict[str, Subject]] = {
    "slider_crank": Subject(
        _slider_crank, "slide", {"crank": 0.05e-3, "rod": 0.1e-3, "offset": 0.1e-3}, (0.0, 2.0 * math.pi)
    ),
    "rsur": Subject(
        _rsur,
        "D",
        {"crank": 1e-3, "coupler": 2e-3, "rocker": 1e-3, "D x": 1e-3, "D y": 1e-3, "D z": 1e-3},
        (0.0, 2.0 * math.pi),
    ),
}


def study(
    name: str, *, poses: int, samples: int, seed: int, workers: int | None = None, progress: Progress | None = None
) -> Study:
    """The tolerances of a subject over a turn of its crank."""
    if name not in SUBJECTS:
        raise check.unknown(name, "mechanism of this study", SUBJECTS)
    count = check.count(poses, "poses", 2, MOST_POSES)
    check.count(samples, "samples", 2, MOST_SAMPLES)
    check.count(seed, "seed", 0)
    subject = SUBJECTS[name]
    m = subject.build()
    angles = np.linspace(*subject.turn, count)
    motion = m.move(angles)
    if not motion.ok:
        raise ModelError(f"{name} cannot be moved over the turn: {motion.text()}")
    found = []
    for k, state in enumerate(motion.states):
        found.append(
            m.tolerances(state, [subject.output], subject.tolerances, samples=samples, seed=seed, workers=workers)
        )
        if progress is not None:
            progress(k + 1, count)
    unit = found[0].sensitivity.outputs[0].unit
    return Study(name, subject.output, unit, angles, tuple(found), samples, seed)


def picture(found: Study) -> Any:
    """The tolerance of the output over the turn, and the contributions of the parameters."""
    figure = figures.new_figure(9.0, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    factor, unit = (1e3, "mm") if found.unit == "m" else (1e3, "mrad")
    degrees = np.degrees(found.angles)
    left.plot(degrees, factor * found.column("worst"), color="#d6632a", label="worst case")
    left.plot(degrees, factor * found.column("rss"), color="#2a78d6", label="root of squares")
    left.plot(degrees, factor * found.column("spread"), "o", color=figures.INK, markersize=3, label="Monte Carlo")
    left.set_xlabel("angle of the crank [°]")
    left.set_ylabel(f"tolerance of {found.output!r} [± {unit}]")
    left.set_ylim(bottom=0.0)
    left.set_xlim(degrees[0], degrees[-1])
    left.legend(frameon=False, fontsize=8)
    figures.clean(left)
    shares = found.contributions()
    names = list(shares)[::-1]
    right.barh(names, [100.0 * shares[name] for name in names], color="#2a78d6")
    right.set_xlabel("mean contribution to the variance [%]")
    figures.clean(right)
    figure.suptitle(f"{found.name}: {found.samples:,} samples in each of {len(found.angles)} poses", fontsize=10)
    return figure
