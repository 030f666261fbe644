"""Tables, files and pictures of motions and simulations."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.system import atomic
from cardan.system.state import FloatArray

if TYPE_CHECKING:
    from cardan.analysis.motion import Motion
    from cardan.analysis.simulation import Simulation

CHARTS: Final = (".svg", ".pdf")  # coordinates or positions over time
SHOWN: Final = (".png", ".gif", ".glb", ".html")  # of the mechanism, by cardan.view
COLORS: Final = ("#2a78d6", "#d6632a", "#2a9d5c", "#8a4fd0", "#c2a000", "#555555")
INK: Final = "#222222"
TOTAL: Final = "total"
LISTED: Final = 12  # most entries of a legend
POSE: Final = ("x [m]", "y [m]", "z [m]", "q w", "q x", "q y", "q z")
RATES: Final = ("vx [m/s]", "vy [m/s]", "vz [m/s]", "wx [rad/s]", "wy [rad/s]", "wz [rad/s]")


def save(result: Motion | Simulation, path: str | Path, mechanism: Any = None) -> None:
    """See :meth:`Motion.save` and :meth:`Simulation.save`."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix == ".csv":
        data = csv_bytes(columns(result))
    elif suffix in CHARTS:
        drawn = io.BytesIO()
        draw(result, ()).savefig(drawn, format=suffix[1:])
        data = drawn.getvalue()
    elif suffix in SHOWN:
        shown = _drawn(result, mechanism)
        # Imported by name when it is needed: results must not import the layer above.
        if suffix == ".html":
            data = import_module("cardan.view.share").html(shown, result)
        else:
            export = import_module("cardan.view.export")
            data = export.to_bytes(suffix, shown, result.states, result.times, _poses(result))
    else:
        valid = ", ".join((".csv", *SHOWN, *CHARTS))
        raise ModelError(f"the file is {str(path)!r}; its name must end in {valid}")
    atomic.write(target, data)


def _drawn(result: Motion | Simulation, given: Any) -> Any:
    """The mechanism whose parts are drawn."""
    if given is not None:
        return given
    if result._source is None:
        raise ModelError("this result was pickled, without its mechanism; pass it: result.save(path, mechanism=m)")
    mechanism, edits = result._source
    if mechanism._model.edits != edits:
        raise ModelError(
            f"mechanism {mechanism.name!r} was edited since this result was computed; compute it again, or pass a copy "
            "from before: result.save(path, mechanism=copy)"
        )
    return mechanism


def _poses(result: Motion | Simulation) -> FloatArray:
    """Shape (times, bodies, 7)."""
    names = result.names
    rows = [np.hstack([result.positions(name), result.quaternions(name)]) for name in names]
    return np.array(rows).reshape(len(names), len(result.times), 7).transpose(1, 0, 2)


def columns(result: Motion | Simulation) -> dict[str, FloatArray]:
    """Time, poses and velocities of the bodies (position and velocity in world, ω in body axes), by title; energies of
    a simulation."""
    found = {"t [s]": result.times}
    for name in result.names:
        values = (result.positions(name), result.quaternions(name), result.velocities(name))
        titles = [f"{name} {title}" for title in (*POSE, *RATES)]
        found |= dict(zip(titles, np.hstack(values).T, strict=True))
    energy = getattr(result, "energy", None)
    return found if energy is None else found | {"kinetic [J]": energy.kinetic, "potential [J]": energy.potential}


def write_csv(path: Path, titled: dict[str, FloatArray]) -> None:
    """Columns under their titles, with all digits."""
    atomic.write(path, csv_bytes(titled))


def csv_bytes(titled: dict[str, FloatArray]) -> bytes:
    """Columns under their titles, with all digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(titled)
    writer.writerows(zip(*(column.tolist() for column in titled.values()), strict=True))
    return text.getvalue().encode()


def draw(simulation: Simulation | Motion, coordinates: Sequence[Joint | Coordinate]) -> Any:
    """See :meth:`Simulation.plot`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ModelError("a picture needs matplotlib; install it with: pip install 'cardan[plot]'") from None
    panels = _coordinates(simulation, coordinates) if coordinates else _positions(simulation)
    energy = getattr(simulation, "energy", None)
    if energy is not None:
        panels["energy [J]"] = {"kinetic": energy.kinetic, "potential": energy.potential, TOTAL: energy.total}
    figure = Figure(figsize=(8.0, 2.2 * len(panels) + 0.4), layout="constrained")
    subplots = np.ravel(figure.subplots(len(panels), 1, sharex=True))
    for axes, (title, lines) in zip(subplots, panels.items(), strict=True):
        for k, (label, values) in enumerate(lines.items()):
            style = {"color": INK, "linestyle": "--"} if label == TOTAL else {"color": COLORS[k % len(COLORS)]}
            axes.plot(simulation.times, values, linewidth=1.3, label=label, **style)
        axes.set_ylabel(title, fontsize=8, color=INK)
        if len(lines) <= LISTED:
            axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.grid(True, color="#e6e6e6", linewidth=0.6)
        axes.tick_params(labelsize=8, colors=INK)
    figure.axes[-1].set_xlabel("t [s]", fontsize=8, color=INK)
    return figure


def _positions(simulation: Simulation | Motion) -> dict[str, dict[str, FloatArray]]:
    names = simulation.names
    return {POSE[k]: {name: simulation.positions(name)[:, k] for name in names} for k in range(3)}


def _coordinates(
    simulation: Simulation | Motion, given: Sequence[Joint | Coordinate]
) -> dict[str, dict[str, FloatArray]]:
    """One panel per unit."""
    panels: dict[str, dict[str, FloatArray]] = {}
    for one in given:
        words = tuple(one.kind.coordinates) if isinstance(one, Joint) else (None,)
        for word in words:
            coordinate = one.of(word) if isinstance(one, Joint) and word else one
            if not isinstance(coordinate, Coordinate):
                raise ModelError(f"plot got {one!r}; it must be a joint or a coordinate of the mechanism")
            of = f"{coordinate.joint}.{word}" if len(words) > 1 else coordinate.joint or coordinate.name
            panels.setdefault(f"{coordinate.kind} [{coordinate.unit}]", {})[of] = simulation.coordinate(coordinate)
    return panels
