"""Figures of the papers' experiments, drawn by matplotlib (the extra ``plot``) without a display."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.cli.figures import INK, clean, new_figure
from cardan.system.state import FloatArray

MOST_COUNTED = 60  # last bin of a histogram, which includes all larger counts
MOST_TRACED = 40  # iterations drawn per run

# The colours of the other figures in the documentation; one per formula.
COLORS = {
    "euler_parameters": "#2a78d6",
    "virtual_rotation": "#d6632a",
    "printed_22": "#8d6a9f",
    "manifold": "#2a9d5c",
    "auto": "#555555",
    "euler_angles": "#d6632a",
}
MUTED = "#888888"


def convergence(table: Any, traces: dict[tuple[str, str], dict[str, list[Any]]], titles: dict[str, str]) -> Any:
    """For each experiment and region: histogram of the iterations, and ‖Φ‖ against the iteration.

    table: a Table2.  traces: ‖Φ‖ of some convergent runs, by (experiment, region) and formula.
    """
    panels = list(dict.fromkeys((row.experiment.name, row.region) for row in table.rows))
    figure = new_figure(10.0, 2.3 * len(panels) + 0.6)
    grid = figure.subplots(len(panels), 2, squeeze=False)
    most = min(MOST_COUNTED, max((int(row.iterations.max(initial=0)) for row in table.rows), default=1))
    for (left, right), panel in zip(grid, panels, strict=True):
        for row in table.rows:
            if (row.experiment.name, row.region) == panel:
                counts = np.bincount(np.minimum(row.iterations, most), minlength=most + 1)
                label = f"{titles[row.formula]}: {row.converged:,}"
                left.step(range(most + 1), counts, where="mid", color=COLORS[row.formula], linewidth=1.3, label=label)
        left.set_title("{}, starts from the {}".format(*panel), fontsize=9, loc="left")
        left.set_ylabel("starts", fontsize=8)
        left.legend(fontsize=7, frameon=False)
        for formula, runs in traces.get(panel, {}).items():
            color = COLORS[formula]
            for norms in runs:
                right.semilogy(range(len(norms)), np.maximum(norms, 1e-17), color=color, alpha=0.12, linewidth=0.7)
            if runs:
                middle = np.maximum(median_run(runs, table.settings.epsilon), 1e-17)
                right.semilogy(range(len(middle)), middle, color=color, linewidth=2.0, label=titles[formula])
        right.axhline(table.settings.epsilon, color=MUTED, linewidth=0.8, linestyle=":")
        right.annotate("ε", (0.0, table.settings.epsilon), xytext=(2, 2), textcoords="offset points", fontsize=8)
        right.set_xlim(0, MOST_TRACED)
        right.set_ylim(1e-17, 1e4)
        right.set_title("convergent runs and their median (bold)", fontsize=8, loc="left", color=MUTED)
        right.set_ylabel("‖Φ‖", fontsize=8)
        right.set_yscale("log")  # also if no run converged
        if right.get_legend_handles_labels()[0]:
            right.legend(fontsize=7, frameon=False, loc="upper right")
        for axes in (left, right):
            clean(axes)
    grid[-1][0].set_xlabel(f"iterations ({most}: {most} or more)", fontsize=8)
    grid[-1][1].set_xlabel(f"iteration (the first {MOST_TRACED})", fontsize=8)
    return figure


def median_run(runs: Sequence[Any], epsilon: float) -> FloatArray:
    """Median of ‖Φ‖ by iteration, up to the first value ≤ ε; a finished run keeps its last value."""
    length = max(map(len, runs))
    padded = [np.pad(norms, (0, length - len(norms)), mode="edge") for norms in runs]
    middle: FloatArray = np.median(padded, axis=0)
    met = np.flatnonzero(middle <= epsilon)
    return middle[: met[0] + 1] if met.size else middle


def sequence(steps: Any) -> Any:
    """Poses during an assembly: parts as lines from joint to joint through their origins, or as dots.

    Dotted lines join the two sides of each joint: gaps, and the lengths of slides and rods.
    """
    count = len(steps.states)
    columns = min(3, count)
    rows = -(-count // columns)
    figure = new_figure(3.4 * columns, 3.0 * rows + 0.5)
    found = ([end for end in joint.ends if hasattr(end, "body")] for joint in steps.mechanism.joints.values())
    joints = [ends for ends in found if ends]  # drivers, limits and gears act on coordinates and have no ends

    def points(state: Any) -> list[Any]:
        return [*(_world(end, state) for ends in joints for end in ends), *state.positions]

    for k, (state, iterations) in enumerate(zip(steps.states, steps.iterations, strict=True)):
        axes = figure.add_subplot(rows, columns, k + 1, projection="3d")
        for number, body in enumerate(steps.mechanism.bodies.values()):
            own = [_world(end, state) for ends in joints for end in ends if end.body is body]
            line = np.array([*own[:1], state[body].position, *own[1:]])
            color = _HUES[number % len(_HUES)]
            axes.plot(*line.T, color=color, linewidth=3.5, solid_capstyle="round", marker="o", markersize=3.5)
        for ends in joints:
            gap = np.array([_world(end, state) for end in ends])
            axes.plot(*gap.T, color=MUTED, linewidth=0.9, linestyle=":")
            for end, point in zip(ends, gap, strict=True):
                if end.body.is_ground:
                    axes.scatter(*point, marker="s", s=36, color=INK, depthshade=False)
        # one scale for the scattered start, another for all later poses
        shown = np.array(points(state) if k == 0 else [p for later in steps.states[1:] for p in points(later)])
        low, high = shown.min(axis=0), shown.max(axis=0)
        middle, reach = 0.5 * (low + high), 0.5 * float((high - low).max())
        for set_limits, m in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), middle, strict=True):
            set_limits(m - reach, m + reach)
        axes.set_box_aspect((1, 1, 1), zoom=1.2)
        axes.view_init(elev=22, azim=-60)
        axes.set_axis_off()
        axes.set_title(f"iteration {iterations:,}" + (", drawn smaller" if k == 0 else ""), fontsize=10)
    verdict = "met" if steps.met else "not met"
    title = f"{steps.mechanism.name}, spring step in quaternions; tolerance {verdict}, residual {steps.residual:.2g}"
    figure.suptitle(f"{title}\nsquares: ground; dotted: gaps of joints, slides and rods", fontsize=9, color=INK)
    return figure


_HUES = ("#2a6f97", "#c8553d", "#588157", "#8d6a9f", "#e09f3e", "#3d5a80", "#9e2a2b", "#6b9080")


def _world(end: Any, state: Any) -> Any:
    """World position [m] of a point or of the origin of a frame."""
    return state[end.body].point(end.origin if hasattr(end, "origin") else end.position)
