"""Make the pictures of the documents: ``python docs/figures.py`` (needs the extra ``plot``)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import cardan as cd
from cardan import examples
from cardan.cli import figures
from cardan.math import euler

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from gallery import (  # noqa: E402
    differential,
    folding_table,
    indexing_table,
    jansen_leg,
    lead_screw,
    planetary_gear,
    strandbeest,
    watt,
)
from papers import hand, minima, pictures  # noqa: E402

IMAGES = Path(__file__).with_name("images")
INK, FAINT = "#1b2a41", "#b8c0cc"
COLOURS = ("#2a6f97", "#c8553d", "#588157", "#8d6a9f", "#e09f3e", "#3d5a80", "#9e2a2b", "#6b9080")
SHOWN = (
    ("rsur", "RSUR four-bar\n1 degree of freedom", 1),
    ("stewart_ups", "Stewart platform, 13 bodies\n6 degrees of freedom", 3),
    ("bent_chain", "bent chain\n3 degrees of freedom", 2),
    ("bricard", "Bricard 6R: Grübler count 0,\n1 degree of freedom", 5),
)
SLIM = 1e-6  # ratio of singular values below which points are coplanar or collinear
ALSO = {  # points to draw besides the joint points, by mechanism and suffix of the body's name
    "watt": {"coupler": (watt.HALF, 0.0, 0.0)},
    "folding_table": {f"{name}_leg": (folding_table.LEG, 0.0, 0.0) for name in folding_table.SIDES},
    "jansen_leg": {"lower_triangle": jansen_leg.LEG.foot_on_triangle()},
    "strandbeest": {f"{leg.prefix}lower_triangle": leg.foot_on_triangle() for _, leg in strandbeest.legs()},
}
SCATTER_ANGLE, SCATTER_DISTANCE = 1.0, 0.5  # rad and m: largest displacement of parts from the sketch

Outline = np.ndarray  # m, shape (points, 3), in body axes
Triple = tuple[float, float, float]
ORIGIN = (0.0, 0.0, 0.0)


def ring(radius: float, *, axis: int = 2, at: Triple = ORIGIN, points: int = 49) -> Outline:
    """A circle about an axis of the body."""
    angles = np.linspace(0.0, 2 * np.pi, points)
    return _around(np.full(points, radius), angles, axis, at)


def gear(teeth: int, module: float, *, axis: int = 2, at: Triple = ORIGIN, inside: bool = False) -> Outline:
    """A toothed rim with a tooth at angle zero: straight flanks, half a pitch wide on the pitch circle."""
    pitch = 2 * np.pi / teeth
    corners = np.array([-0.33, -0.17, 0.17, 0.33, 0.5]) * pitch
    heights = np.array([-1.0, 0.9, 0.9, -1.0, -1.0]) * (-module if inside else module)
    angles = np.concatenate([corners + k * pitch for k in range(teeth)] + [[corners[0] + 2 * np.pi]])
    radius = teeth * module / 2 + np.concatenate([np.tile(heights, teeth), heights[:1]])
    return _around(radius, angles, axis, at)


def _around(radius: np.ndarray, angles: np.ndarray, axis: int, at: Triple) -> Outline:
    plane = {0: (2, 1, -1.0), 1: (2, 0, 1.0), 2: (0, 1, 1.0)}[axis]  # angles run from the first axis to the second
    points = np.tile(np.array(at, dtype=float), (len(angles), 1))
    points[:, plane[0]] += radius * np.cos(angles)
    points[:, plane[1]] += plane[2] * radius * np.sin(angles)
    return points


def box(x: float, y: float, z: float, *, at: Triple = ORIGIN) -> Iterator[Outline]:
    """Edges of a box of half sizes x, y, z."""
    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1), (1, 1)])
    for side in (-1, 1):
        yield np.array([(a * x, b * y, side * z) for a, b in corners]) + at
    for a, b in corners[:-1]:
        yield np.array([(a * x, b * y, -z), (a * x, b * y, z)]) + at


def line(*points: Triple) -> Outline:
    return np.array(points, dtype=float)


# Outlines that are drawn in addition to the joint points, by mechanism and body; "ground" is drawn in ink.
OUTLINES: dict[str, dict[str, list[Outline]]] = {
    "planetary_gear": {
        "sun": [gear(planetary_gear.SUN, planetary_gear.MODULE)],
        "ring": [gear(planetary_gear.RING, planetary_gear.MODULE, inside=True), ring(0.135)],
        **{
            f"planet_{k + 1}": [gear(planetary_gear.PLANET, planetary_gear.MODULE)]
            for k in range(planetary_gear.PLANETS)
        },
    },
    "differential": {
        **{
            name: [
                gear(differential.SIDE, differential.MODULE, axis=0, at=(inwards, 0.0, 0.0)),
                ring(0.25, axis=0),
                line((0.0, 0.0, 0.25), (0.0, 0.0, -0.25)),
                line((0.0, 0.0, 0.0), (inwards, 0.0, 0.0)),
            ]
            for name, inwards in (
                ("left", differential.WHEEL - differential.WIDE),
                ("right", differential.WIDE - differential.WHEEL),
            )
        },
        **{name: [gear(differential.BEVEL, differential.MODULE, axis=1)] for name in ("bevel_1", "bevel_2")},
        "case": [gear(differential.CROWN, differential.MODULE, axis=0, at=(-0.1, 0.0, 0.0))],
        "pinion": [
            gear(differential.PINION, differential.MODULE, axis=1, at=(0.0, 0.17, 0.0)),
            line((0.0, 0.0, 0.0), (0.0, 0.17, 0.0)),
        ],
    },
    "lead_screw": {
        "motor": [ring(lead_screw.MOTOR, axis=0), line((0.0, 0.0, 0.0), (0.0, 0.0, lead_screw.MOTOR))],
        "spindle": [
            ring(lead_screw.SPINDLE, axis=0),
            line((0.0, 0.0, 0.0), (lead_screw.LENGTH, 0.0, 0.0)),
            np.array(
                [
                    (0.06 + 0.5 * u, -0.015 * np.sin(60 * np.pi * u), 0.015 * np.cos(60 * np.pi * u))
                    for u in np.linspace(0.0, 1.0, 500)
                ]
            ),
        ],
        "carriage": [*box(0.04, 0.04, 0.04), *box(0.2, 0.01, 0.005, at=(0.15, lead_screw.BESIDE, 0.0))],
        "dial": [ring(lead_screw.DIAL, axis=1), line((0.0, 0.0, 0.0), (0.0, 0.0, lead_screw.DIAL))],
        "ground": [line((0.0, lead_screw.BESIDE, 0.0), (lead_screw.LENGTH, lead_screw.BESIDE, 0.0))],
    },
    "indexing_table": {
        "table": [
            ring(indexing_table.RADIUS + 0.06),
            *(
                ring(0.04, at=(indexing_table.RADIUS * np.cos(a), indexing_table.RADIUS * np.sin(a), 0.0), points=25)
                for a in np.arange(indexing_table.STATIONS) * indexing_table.STEP
            ),
        ],
        "ram": [*box(0.03, 0.03, 0.06, at=(0.0, 0.0, 0.06))],
        "cam": [ring(0.08, axis=0), line((0.0, 0.0, 0.0), (0.3, 0.0, 0.0)), line((0.0, 0.0, 0.0), (0.0, 0.0, 0.08))],
    },
    "folding_table": {"ground": [line((-0.6, 0.0, 0.0), (0.6, 0.0, 0.0))]},
    "cardan_joint": {
        "cross": [line((0.0, -0.08, 0.0), (0.0, 0.08, 0.0)), line((0.0, 0.0, -0.08), (0.0, 0.0, 0.08))],
        "input": [
            line((-0.08, 0.0, 0.08), (0.0, 0.0, 0.08)),
            line((-0.08, 0.0, -0.08), (0.0, 0.0, -0.08)),
            line((-0.08, 0.0, -0.08), (-0.08, 0.0, 0.08)),
        ],
        "output": [
            line((0.08, 0.08, 0.0), (0.0, 0.08, 0.0)),
            line((0.08, -0.08, 0.0), (0.0, -0.08, 0.0)),
            line((0.08, -0.08, 0.0), (0.08, 0.08, 0.0)),
        ],
    },
}


def origin(end: cd.Frame | cd.Point) -> tuple[float, float, float]:
    return end.origin if isinstance(end, cd.Frame) else end.position


def points(m: cd.Mechanism) -> dict[str, list[tuple[float, float, float]]]:
    """Joint points of each body in body axes, each once, and the additional points of ALSO."""
    found: dict[str, list[tuple[float, float, float]]] = {body: [point] for body, point in ALSO.get(m.name, {}).items()}
    for joint in m.joints.values():
        for end in joint.ends:
            if isinstance(end, cd.Coordinate):
                continue
            local = origin(end)
            mine = found.setdefault(end.body.name, [])
            if local not in mine:
                mine.append(local)
    return found


def draw(axes, m: cd.Mechanism, state: cd.State) -> None:
    """Bodies as lines or panels between their joint points, ground points as squares, open joints as dashes."""
    outlines = OUTLINES.get(m.name, {})
    for number, (name, local) in enumerate(points(m).items()):
        world = np.array([state[name].point(p) for p in local])
        if name == "ground":
            for outline in outlines.get(name, ()):
                axes.plot(*outline.T, color=INK, linewidth=1.4)
            axes.scatter(*world.T, marker="s", s=16, color=INK, depthshade=False)
            continue
        colour = COLOURS[number % len(COLOURS)]
        for outline in outlines.get(name, ()):
            axes.plot(*np.array([state[name].point(p) for p in outline]).T, color=colour, linewidth=1.1)
        if len(world) == 1:
            continue
        if len(world) > 2:
            offset = world - world.mean(axis=0)
            _, sizes, u = np.linalg.svd(offset)
            if sizes[1] > SLIM * sizes[0] > sizes[2]:  # in a plane, not on a line: a panel
                order = np.argsort(np.arctan2(offset @ u[1], offset @ u[0]))
                axes.add_collection3d(Poly3DCollection([world[order]], facecolor=colour, alpha=0.25, linewidth=0))
                world = world[[*order, order[0]]]
            else:
                world = world[np.argsort(offset @ u[0], kind="stable")]
        axes.plot(*world.T, color=colour, linewidth=2.2, solid_capstyle="round")
        axes.scatter(*world.T, s=9, color=colour, depthshade=False)
    for joint in m.joints.values():
        if any(isinstance(end, cd.Coordinate) for end in joint.ends):
            continue
        ends = [state[end.body].point(origin(end)) for end in (joint.a, joint.b)]
        if joint.kind.name == "prismatic":
            axes.plot(*np.array(ends).T, color=COLOURS[0], linewidth=2.2, solid_capstyle="round")
        elif np.linalg.norm(ends[1] - ends[0]) > 1e-6:
            axes.plot(*np.array(ends).T, color=FAINT, linewidth=1.0, linestyle=(0, (3, 2)))


def scattered(m: cd.Mechanism, seed: int) -> cd.State:
    """Every part moved and rotated at random from its authored pose."""
    rng = np.random.default_rng(seed)
    return m.state.moved(
        {
            name: cd.Pose(
                np.array(body.position) + rng.uniform(-SCATTER_DISTANCE, SCATTER_DISTANCE, 3),
                euler.retract(body.orientation, rng.uniform(-SCATTER_ANGLE, SCATTER_ANGLE, 3)),
            )
            for name, body in m.bodies.items()
        }
    )


def seen(m: cd.Mechanism, states: list[cd.State]) -> np.ndarray:
    """All points that are drawn [m], shape (points, 3)."""
    outlines = OUTLINES.get(m.name, {})
    return np.array(
        [
            state[name].point(p)
            for state in states
            for name, local in points(m).items()
            for p in [*local, *(p for outline in outlines.get(name, ()) for p in outline)]
        ]
    )


def frame(axes, m: cd.Mechanism, states: list[cd.State], zoom: float = 0.48) -> None:
    world = seen(m, states)
    low, high = world.min(axis=0), world.max(axis=0)
    middle, half = (low + high) / 2, zoom * max(high - low)
    for set_limits, c in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), middle, strict=True):
        set_limits(c - half, c + half)
    axes.set_box_aspect((1, 1, 1))
    axes.set_axis_off()


def gallery() -> None:
    """Four mechanisms, scattered and assembled."""
    figure = plt.figure(figsize=(12, 6.4), dpi=110)
    for column, (name, title, seed) in enumerate(SHOWN):
        m = examples.REGISTRY[name].build()
        start = scattered(m, seed)
        result = m.assemble(start=start)
        if not result.ok:
            raise SystemExit(f"{name}: {result.text()}")
        for row, state in enumerate((start, result.state)):
            axes = figure.add_subplot(2, len(SHOWN), 1 + column + row * len(SHOWN), projection="3d")
            axes.view_init(elev=18, azim=-58)
            draw(axes, m, state)
            frame(axes, m, [state])
            if row == 0:
                axes.set_title(title, fontsize=12, color=INK)
    for row, text in enumerate(("scattered parts", "assembled")):
        figure.text(0.012, 0.70 - 0.46 * row, text, rotation=90, va="center", fontsize=13, color=INK)
    figure.subplots_adjust(left=0.03, right=0.995, bottom=0.0, top=0.90, wspace=0.0, hspace=0.0)
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / "gallery.png", facecolor="white")


def descent() -> None:
    """The assembly of the bent chain, as ``cardan papers minima --plot`` draws it."""
    figures.save(pictures.sequence(minima.sequence()), IMAGES / "minima.png")


def hands() -> None:
    """Stability and cost of hands, as ``cardan papers hand --plot`` draws them."""
    stability = [hand.measure_stability(rate) for rate in hand.RATES]
    costs = [hand.measure_cost(bodies) for bodies in hand.BODIES]
    figures.save(hand.picture(stability, costs), IMAGES / "hand.png")


def closest_pair() -> None:
    """A torus above a bumpy sheet, with their closest pair."""
    x, y = np.meshgrid(np.linspace(-3, 3, 9), np.linspace(-3, 3, 9), indexing="ij")
    z = np.random.default_rng(4).normal(scale=0.5, size=x.shape)
    sheet, ring = cd.geometry.Surface(np.stack([x, y, z], axis=-1)), cd.geometry.torus(1.2, 0.35)
    pose = np.array([0.2, 0.1, 2.0, *euler.from_axis_angle((1.0, 0.4, 0.0), 0.7)])
    pair = cd.geometry.closest_pair(sheet, ring, pose)
    axes = plt.figure(figsize=(7, 5)).add_subplot(projection="3d", computed_zorder=False)
    cd.geometry.plot(sheet, axes, color=COLOURS[0], alpha=0.55, linewidth=0)
    moved = ring.to_nurbs().transformed(euler.matrix(pose[3:]), pose[:3])
    cd.geometry.plot(moved, axes, color=COLOURS[4], alpha=0.6, linewidth=0)
    axes.plot(*pair.points.T, color=COLOURS[6], marker="o", linewidth=2.5, zorder=10)
    axes.text(*pair.points.mean(axis=0), f"  {pair.distance:.3f} m", color=INK, zorder=11)
    axes.view_init(12, -60)
    axes.set_axis_off()
    plt.savefig(IMAGES / "geometry.png", dpi=110, bbox_inches="tight")
    plt.close()


if __name__ == "__main__":
    gallery()
    descent()
    hands()
    closest_pair()
