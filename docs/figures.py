"""Make the pictures of the README: ``python docs/figures.py`` (needs the extra ``plot``)."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import cardan as cd
from cardan import examples
from cardan.examples import jansen_leg, strandbeest, watt
from cardan.math import euler

IMAGES = Path(__file__).with_name("images")
INK, FAINT = "#1b2a41", "#b8c0cc"
COLOURS = ("#2a6f97", "#c8553d", "#588157", "#8d6a9f", "#e09f3e", "#3d5a80", "#9e2a2b", "#6b9080")
SHOWN = (
    ("rsur", "RSUR four-bar\n1 freedom", 1),
    ("stewart_ups", "Stewart platform, 13 bodies\n6 freedoms", 3),
    ("bent_chain", "bent chain\n3 freedoms", 2),
    ("bricard", "Bricard 6R: counted 0,\ntruly 1 freedom", 5),
)
COLUMNS = 6  # of the contact sheet
SLIM = 1e-6  # ratio of singular values: thinner than this is flat, or a line
FLAT = 1e-9  # m: joint points that lie in one plane within this are seen from above
Y_UP = ("strandbeest",)
ALSO = {  # points that no joint marks, by mechanism and the end of a body's name
    "watt": {"coupler": (watt.HALF, 0.0, 0.0)},
    "jansen_leg": {"lower_triangle": jansen_leg.LEG.foot_on_triangle()},
    "strandbeest": {f"{leg.prefix}lower_triangle": leg.foot_on_triangle() for _, leg in strandbeest.legs()},
}
TURN = 1.0  # rad, and in half metres: how far the parts are thrown from the sketch


def origin(end: cd.Frame | cd.Point) -> tuple[float, float, float]:
    return end.origin if isinstance(end, cd.Frame) else end.position


def points(m: cd.Mechanism) -> dict[str, list[tuple[float, float, float]]]:
    """Joint points of each body, in its own axes, each once, and what else there is to see of it."""
    found: dict[str, list[tuple[float, float, float]]] = {body: [point] for body, point in ALSO.get(m.name, {}).items()}
    for joint in m.joints.values():
        for end in (joint.a, joint.b):
            local = origin(end)
            mine = found.setdefault(end.body.name, [])
            if local not in mine:
                mine.append(local)
    return found


def draw(axes, m: cd.Mechanism, state: cd.State) -> None:
    """Bodies as lines or panels between their joint points, ground points as squares, open joints as dashes."""
    for number, (name, local) in enumerate(points(m).items()):
        world = np.array([state[name].point(p) for p in local])
        if name == "ground":
            axes.scatter(*world.T, marker="s", s=16, color=INK, depthshade=False)
            continue
        colour = COLOURS[number % len(COLOURS)]
        if len(world) == 1:
            continue
        if len(world) > 2:
            offset = world - world.mean(axis=0)
            _, sizes, u = np.linalg.svd(offset)
            if sizes[1] > SLIM * sizes[0] > sizes[2]:  # in a plane, not on a line: a panel
                turn = np.argsort(np.arctan2(offset @ u[1], offset @ u[0]))
                axes.add_collection3d(Poly3DCollection([world[turn]], facecolor=colour, alpha=0.25, linewidth=0))
                world = world[[*turn, turn[0]]]
            else:
                world = world[np.argsort(offset @ u[0], kind="stable")]
        axes.plot(*world.T, color=colour, linewidth=2.2, solid_capstyle="round")
        axes.scatter(*world.T, s=9, color=colour, depthshade=False)
    for joint in m.joints.values():
        ends = [state[end.body].point(origin(end)) for end in (joint.a, joint.b)]
        if joint.kind.name == "prismatic":
            axes.plot(*np.array(ends).T, color=COLOURS[0], linewidth=2.2, solid_capstyle="round")
        elif np.linalg.norm(ends[1] - ends[0]) > 1e-6:
            axes.plot(*np.array(ends).T, color=FAINT, linewidth=1.0, linestyle=(0, (3, 2)))


def scattered(m: cd.Mechanism, seed: int) -> cd.State:
    """Every part moved and turned at random from where it was sketched."""
    rng = np.random.default_rng(seed)
    return m.state.moved(
        {
            name: cd.Pose(
                np.array(body.position) + rng.uniform(-0.5, 0.5, 3),
                euler.retract(body.orientation, rng.uniform(-TURN, TURN, 3)),
            )
            for name, body in m.bodies.items()
        }
    )


def frame(axes, m: cd.Mechanism, states: list[cd.State], zoom: float = 0.42) -> None:
    world = np.array([state[name].point(p) for state in states for name, local in points(m).items() for p in local])
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


def contact_sheet() -> None:
    """Every mechanism of the gallery, assembled from its sketch."""
    rows = -(-len(examples.REGISTRY) // COLUMNS)
    figure = plt.figure(figsize=(2.2 * COLUMNS, 2.3 * rows), dpi=110)
    for number, example in enumerate(examples.REGISTRY.values()):
        m = example.build()
        result = m.assemble()
        if not result.ok:
            raise SystemExit(f"{example.name}: {result.text()}")
        axes = figure.add_subplot(rows, COLUMNS, 1 + number, projection="3d", proj_type="ortho")
        heights = [result.state[name].point(p)[2] for name, local in points(m).items() for p in local]
        above = np.ptp(heights) < FLAT
        if above:
            axes.view_init(elev=90, azim=-90)
        else:
            axes.view_init(elev=18, azim=-58, vertical_axis="y" if example.name in Y_UP else "z")
        draw(axes, m, result.state)
        frame(axes, m, [result.state], zoom=0.5)
        axes.set_title(example.name, fontsize=10, color=INK, y=0.98)
    figure.subplots_adjust(left=0.0, right=1.0, bottom=0.0, top=0.96, wspace=0.0, hspace=0.06)
    figure.savefig(IMAGES / "contact_sheet.png", facecolor="white")


if __name__ == "__main__":
    gallery()
    contact_sheet()
