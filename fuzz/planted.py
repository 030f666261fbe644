"""Planted contradictions: linkages with wrong lengths, impossible loops and contradicting drivers, each by closed form.

Half of them are the proved cases of :mod:`fuzz.inconsistent`; the others are linkages as engineers draw them, whose
contradiction follows from the inequality named in each function.  :func:`measure` counts the verdicts and the time.
"""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from fuzz import inconsistent
from fuzz.case import build
from fuzz.geometry import quaternion, rotation

Z = (0.0, 0.0, 1.0)
X = (1.0, 0.0, 0.0)


def draw(seed, index):
    """(variant, mechanism, start) of a contradiction."""
    rng = np.random.default_rng([seed, 2_000_000_000 + index])
    if index % 2 == 0:
        case = inconsistent.draw(rng)
        start = None if case.start is None else {name: tuple(pose) for name, pose in case.start.items()}
        return case.variant, build(case), start
    variant = str(rng.choice(list(VARIANTS)))
    return variant, VARIANTS[variant](rng), None


def _mechanism():
    import cardan as cd

    return cd.Mechanism("planted")


def _bar(rng, m, name, length):
    """A bar along its x axis, drawn anywhere in the plane, a little out of it."""
    angle, tilt = rng.uniform(-np.pi, np.pi), rng.uniform(-0.2, 0.2)
    orientation = quaternion(rotation(Z, angle) @ rotation(X, tilt))
    return m.body(name, position=[*rng.uniform(-1, 1, 2), rng.uniform(-0.1, 0.1)], orientation=orientation), length


def _hinge(m, name, a, p, b, q):
    return m.revolute(name, a.frame(p, z=Z, x=X), b.frame(q, z=Z, x=X))


def _chain(rng, m, lengths):
    """Bars hinged one after the other, the first to the ground at the origin; returns the bars and their lengths."""
    bars, last, at = [], m.ground, (0.0, 0.0, 0.0)
    for k, length in enumerate(lengths):
        bar, _ = _bar(rng, m, f"bar_{k}", length)
        _hinge(m, f"hinge_{k}", last, at, bar, (0.0, 0.0, 0.0))
        bars.append(bar)
        last, at = bar, (float(length), 0.0, 0.0)
    return bars


def too_far(rng):
    """A chain of hinged bars from the origin to a point farther away than their total length."""
    m = _mechanism()
    lengths = rng.uniform(0.2, 1.0, int(rng.integers(2, 6)))
    bars = _chain(rng, m, lengths)
    far = lengths.sum() * (1.0 + 10.0 ** rng.uniform(-4, 0.3))
    _hinge(m, "last", bars[-1], (float(lengths[-1]), 0.0, 0.0), m.ground, (float(far), 0.0, 0.0))
    return m


def bar_too_long(rng):
    """A closed chain with one bar longer than all other sides together."""
    m = _mechanism()
    lengths = rng.uniform(0.2, 1.0, int(rng.integers(3, 6)))
    k = int(rng.integers(len(lengths)))
    ground = rng.uniform(0.2, 1.0)
    lengths[k] = (lengths.sum() - lengths[k] + ground) * (1.0 + 10.0 ** rng.uniform(-4, 0.3))
    bars = _chain(rng, m, lengths)
    _hinge(m, "last", bars[-1], (float(lengths[-1]), 0.0, 0.0), m.ground, (float(ground), 0.0, 0.0))
    return m


def slide_too_far(rng):
    """A crank and a coupler whose slider runs on a line farther from the crank than their total length."""
    m = _mechanism()
    r, b = rng.uniform(0.2, 1.0, 2)
    bars = _chain(rng, m, [r, b])
    slider, _ = _bar(rng, m, "slider", 0.0)
    offset = (r + b) * (1.0 + 10.0 ** rng.uniform(-3, 0.3))
    _hinge(m, "pin", bars[1], (float(b), 0.0, 0.0), slider, (0.0, 0.0, 0.0))
    m.prismatic("slide", m.ground.frame((0.0, float(offset), 0.0), z=X, x=Z), slider.frame(z=X, x=Z))
    return m


def two_drivers(rng):
    """A hinge in a chain with two drivers of different values."""
    m = _mechanism()
    bars = _chain(rng, m, rng.uniform(0.2, 1.0, int(rng.integers(1, 5))))
    k = int(rng.integers(len(bars)))
    angle, other = rng.uniform(-1, 1), rng.choice([-1, 1]) * 10.0 ** rng.uniform(-4, 0)
    m.drive("motor", m[f"hinge_{k}"], float(angle))
    m.drive("second motor", m[f"hinge_{k}"], float(angle + other))
    return m


def gears(rng):
    """Two hinges coupled by gears, both driven, not in their ratio."""
    m = _mechanism()
    for name, at in (("a", 0.0), ("b", 1.0)):
        _hinge(m, name, m.ground, (at, 0.0, 0.0), _bar(rng, m, f"wheel_{name}", 1.0)[0], (0.0, 0.0, 0.0))
    ratio, angle = float(rng.uniform(-3, 3)), float(rng.uniform(-1, 1))
    m.gear("mesh", m["a"], m["b"], ratio=ratio, phase=0.0)
    m.drive("motor", m["a"], angle)
    m.drive("second motor", m["b"], float(ratio * angle + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-3, 0)))
    return m


def unreachable_angle(rng):
    """A four-bar driven to an angle at which its diagonal is longer than coupler and rocker together."""
    m = _mechanism()
    while True:
        crank, coupler, rocker, ground = rng.uniform(0.3, 1.5, 4)
        angle = rng.uniform(-np.pi, np.pi)
        diagonal = abs(crank * np.exp(1j * angle) - ground)
        closes = max(crank, coupler, rocker, ground) < 0.45 * (crank + coupler + rocker + ground)
        if closes and diagonal > 1.001 * (coupler + rocker):
            break
    bars = _chain(rng, m, [crank, coupler, rocker])
    _hinge(m, "last", bars[-1], (float(rocker), 0.0, 0.0), m.ground, (float(ground), 0.0, 0.0))
    m.drive("motor", m["hinge_0"], float(angle))
    return m


def slide_driven_too_far(rng):
    """A slider-crank whose slider is driven beyond the reach of crank and coupler."""
    m = _mechanism()
    r, b = rng.uniform(0.2, 1.0, 2)
    bars = _chain(rng, m, [r, b])
    slider, _ = _bar(rng, m, "slider", 0.0)
    _hinge(m, "pin", bars[1], (float(b), 0.0, 0.0), slider, (0.0, 0.0, 0.0))
    m.prismatic("slide", m.ground.frame(z=X, x=Z), slider.frame(z=X, x=Z))
    m.drive("motor", m["slide"], float(rng.choice([-1, 1]) * (r + b) * (1.0 + 10.0 ** rng.uniform(-3, 0.5))))
    return m


def leg_too_long(rng):
    """A platform on six rods, one of them longer than its feet allow from any of the other rods."""
    m = _mechanism()
    plate = m.body("plate", position=[*rng.uniform(-0.3, 0.3, 2), 1.0])
    feet, heads = rng.uniform(-1, 1, (2, 6, 3)) * [1.0, 1.0, 0.1]
    heads *= 0.5
    lengths = np.linalg.norm(heads + np.array(Z) - feet, axis=1)
    k = int(rng.integers(6))
    reach = [lengths[j] + np.linalg.norm(feet[k] - feet[j]) + np.linalg.norm(heads[k] - heads[j]) for j in range(6)]
    lengths[k] = min(reach[j] for j in range(6) if j != k) * (1.0 + 10.0 ** rng.uniform(-3, 0.0))
    for j in range(6):
        m.distance(f"rod_{j}", m.ground.point(feet[j]), plate.point(heads[j]), float(lengths[j]))
    return m


VARIANTS = {
    f.__name__: f
    for f in (
        too_far,
        bar_too_long,
        slide_too_far,
        two_drivers,
        gears,
        unreachable_angle,
        slide_driven_too_far,
        leg_too_long,
    )
}


def measure(seed, indices):
    """Counter of (variant, status), and the seconds of all assemblies, by variant."""
    found: Counter[tuple[str, str]] = Counter()
    seconds: Counter[str] = Counter()
    for index in indices:
        variant, m, start = draw(seed, index)
        began = time.perf_counter()
        result = m.assemble(start)
        seconds[variant] += time.perf_counter() - began
        found[variant, str(result.status)] += 1
    return found, seconds
