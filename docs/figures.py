"""Make the pictures of the documents: ``python docs/figures.py`` (needs the extra ``plot``)."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cardan as cd
from cardan import examples
from cardan.math import euler
from cardan.study import figures, minima

IMAGES = Path(__file__).with_name("images")
INK, FAINT = "#1b2a41", "#b8c0cc"
COLOURS = ("#2a6f97", "#c8553d", "#588157", "#8d6a9f", "#e09f3e", "#3d5a80", "#9e2a2b", "#6b9080")
SHOWN = (
    ("rsur", "RSUR four-bar\n1 freedom", 1),
    ("stewart_ups", "Stewart platform, 13 bodies\n6 freedoms", 3),
    ("bent_chain", "bent chain\n3 freedoms", 2),
    ("bricard", "Bricard 6R: counted 0,\ntruly 1 freedom", 5),
)
TURN = 1.0  # rad, and in half metres: how far the parts are thrown from the sketch


def origin(end: cd.Frame | cd.Point) -> tuple[float, float, float]:
    return end.origin if isinstance(end, cd.Frame) else end.position


def points(m: cd.Mechanism) -> dict[str, list[tuple[float, float, float]]]:
    """Joint points of each body, in its own axes, each once."""
    found: dict[str, list[tuple[float, float, float]]] = {}
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
        if len(world) > 2:
            middle = world.mean(axis=0)
            u = np.linalg.svd(world - middle)[2]
            turn = np.argsort(np.arctan2((world - middle) @ u[1], (world - middle) @ u[0]))
            axes.plot_trisurf(*world[turn].T, color=colour, alpha=0.25, linewidth=0)
            world = world[[*turn, turn[0]]]
        elif len(world) == 1:
            continue
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


def frame(axes, m: cd.Mechanism, states: list[cd.State]) -> None:
    world = np.array([state[name].point(p) for state in states for name, local in points(m).items() for p in local])
    low, high = world.min(axis=0), world.max(axis=0)
    middle, half = (low + high) / 2, 0.42 * max(high - low)
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
    """The bent chain on its way, as ``cardan study minima --plot`` draws it."""
    figures.save(figures.sequence(minima.sequence()), IMAGES / "minima.png")


if __name__ == "__main__":
    gallery()
    descent()
