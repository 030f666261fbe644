"""Tables, files and pictures of motions and simulations."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cardan import contents
from cardan.dynamics.reactions import effort_units
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint, Role
from cardan.system import atomic, saving
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
_CALL: Final = re.compile(r"(rate|acceleration|effort)\((.+)\)", re.DOTALL)
GROUPS: Final = {  # words for many columns, and what is read of each joint
    **{"coordinates": "", "rates": "rate", "accelerations": "acceleration", "efforts": "effort"},
    **dict.fromkeys(("poses", "velocities", "poses and velocities", "energies"), ""),
}
RATES: Final = ("vx [m/s]", "vy [m/s]", "vz [m/s]", "wx [rad/s]", "wy [rad/s]", "wz [rad/s]")


def save(result: Motion | Simulation, path: str | Path, mechanism: Any = None, given: Iterable[Any] = ()) -> None:
    """See :meth:`Motion.save` and :meth:`Simulation.save`."""
    target = contents.file_path(path)
    suffix = target.suffix.lower()
    chosen = _listed(given)
    if chosen and suffix not in (".csv", *CHARTS):
        valid = ", ".join((".csv", *CHARTS))
        raise ModelError(f"columns were given for the file {str(path)!r}; they are for files that end in {valid}")
    if suffix == ".csv":
        data = csv_bytes(columns(result, chosen))
    elif suffix in CHARTS:
        drawn = io.BytesIO()
        draw(result, chosen).savefig(drawn, format=suffix[1:])
        data = drawn.getvalue()
    elif suffix in saving.SUFFIXES:
        data = saving.to_bytes(suffix, result, mechanism)
    elif suffix in SHOWN:
        shown = _drawn(result, mechanism)
        # Imported by name when it is needed: results must not import the layer above.
        if suffix == ".html":
            data = import_module("cardan.view.share").html(shown, result)
        else:
            export = import_module("cardan.view.export")
            data = export.to_bytes(suffix, shown, result.states, result.times, _poses(result))
    else:
        valid = ", ".join((".csv", *SHOWN, *CHARTS, *saving.SUFFIXES))
        raise ModelError(f"the file is {str(path)!r}; its name must end in {valid}")
    atomic.write(target, data)


def _listed(given: Any) -> tuple[Any, ...]:
    """The columns that are asked for; one may be given without a list."""
    return (given,) if isinstance(given, str | Joint | Coordinate) else tuple(given)


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


class Column(NamedTuple):
    """A column of a table: what it is called, which quantity it is, its unit, and its values, shape (times,)."""

    name: str
    quantity: str
    unit: str
    values: FloatArray

    @property
    def title(self) -> str:
        """Name and unit; quaternions have none."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


def columns(result: Motion | Simulation, given: Sequence[Any] = ()) -> dict[str, FloatArray]:
    """Columns by title; see :meth:`Motion.table`."""
    chosen = given or ("poses and velocities", *(("energies",) if hasattr(result, "energy") else ()))
    found = {"t [s]": result.times}
    for column in [column for one in chosen for column in _columns(result, one)]:
        title, number = column.title, 1
        while title in found and not np.array_equal(found[title], column.values, equal_nan=True):
            number += 1  # another coordinate between the same bodies
            title = f"{column.title} ({number})"
        found[title] = column.values
    return found


def _columns(result: Motion | Simulation, one: Any) -> list[Column]:
    """What one of the words, joints or coordinates of a table stands for."""
    joints = result._system.index.joints or {}
    if isinstance(one, str) and one not in joints:
        if one in GROUPS:
            return _group(result, one)
        called = _CALL.fullmatch(one)
        if called is not None:
            word, name = called.groups()
            return [_effort(result, name)] if word == "effort" else _of_joint(result, word, name)
    return _of_joint(result, "", one)


def _group(result: Motion | Simulation, word: str) -> list[Column]:
    joints = result._system.index.joints
    if word in ("coordinates", "rates", "accelerations"):
        if joints is None:
            raise ModelError(
                f"this result was pickled, without its joints, so {word!r} is not known; pass the joints themselves"
            )
        moving = [joint for joint in joints.values() if isinstance(joint, Joint) and joint.kind.coordinates]
        return [column for joint in moving for column in _of_joint(result, GROUPS[word], joint)]
    if word == "efforts":
        forces, connections = result._acting()
        is_limit = {name for name, found in connections.items() if found.kind.role is Role.LIMIT}
        named = [name for name in effort_units(forces, connections) if name not in is_limit]
        return [_effort(result, name) for name in named]
    if word == "energies":
        energy = getattr(result, "energy", None)
        if energy is None:
            raise ModelError("a driven motion has no energies; those of m.simulate have")
        return [Column("kinetic", "energy", "J", energy.kinetic), Column("potential", "energy", "J", energy.potential)]
    found: list[Column] = []
    for name in result.names:
        if word != "velocities":
            values = np.hstack([result.positions(name), result.quaternions(name)]).T
            found += [Column(f"{name} {axis}", "", "", row) for axis, row in zip(POSE, values, strict=True)]
        if word != "poses":
            values = result.velocities(name).T
            found += [Column(f"{name} {axis}", "", "", row) for axis, row in zip(RATES, values, strict=True)]
    return found


def _of_joint(result: Motion | Simulation, word: str, given: Any) -> list[Column]:
    """The coordinates of a joint, or one coordinate; or their rates or accelerations, by the word."""
    item = result._system.index.joint(given) if isinstance(given, str) else given
    if isinstance(item, Joint):
        item.chosen(next(iter(item.kind.coordinates), None))  # refused if it has none
        every = [item.of(name) for name in item.kind.coordinates]
    elif isinstance(item, Coordinate):
        every = [item]
    else:
        raise ModelError(f"a column is {given!r}; it must be a joint or a coordinate, or the name of one")
    read, power = {
        "": (result.coordinate, ""),
        "rate": (result.rate, "/s"),
        "acceleration": (result.acceleration, "/s²"),
    }[word]
    names = [_key(result, one) for one in every]
    titles = [f"{word}({name})" if word else name for name in names]
    given = zip(titles, every, strict=True)
    return [Column(title, word or one.kind, f"{one.unit}{power}", read(one)) for title, one in given]


def _key(result: Motion | Simulation, one: Coordinate) -> str:
    """A coordinate by name: that of its joint, with its own if the joint has several; or its own, and two bodies."""
    if not one.joint:
        return f"{one.name} of {one.a.body.name} – {one.b.body.name}"
    joint = (result._system.index.joints or {}).get(one.joint)
    is_only = isinstance(joint, Joint) and len(joint.kind.coordinates) == 1
    return one.joint if is_only else f"{one.joint}.{one.name}"


def _effort(result: Motion | Simulation, name: str) -> Column:
    values = result.effort(name)  # refused if it has none
    return Column(f"effort({name})", "effort", effort_units(*result._acting())[name], values)


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


def draw(simulation: Simulation | Motion, coordinates: Sequence[Any]) -> Any:
    """See :meth:`Simulation.plot`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ModelError("a picture needs matplotlib; install it with: pip install 'cardan[plot]'") from None
    panels = _panels(simulation, coordinates) if coordinates else _positions(simulation)
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


def _panels(simulation: Simulation | Motion, given: Sequence[Any]) -> dict[str, dict[str, FloatArray]]:
    """One panel per quantity and unit; those of bodies have one for each title without the name of the body."""
    panels: dict[str, dict[str, FloatArray]] = {}
    for one in given:
        if one == "energies" and hasattr(simulation, "energy"):
            continue  # they have a panel always
        for column in _columns(simulation, one):
            panel, label = f"{column.quantity} [{column.unit}]", column.name
            if not column.quantity:
                name = next(name for name in simulation.names if column.name.startswith(f"{name} "))
                panel, label = column.name[len(name) + 1 :], name
            panels.setdefault(panel, {})[label] = column.values
    return panels
