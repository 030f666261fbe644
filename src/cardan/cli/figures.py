"""Files that a command writes: checks before any work, and figures, drawn by matplotlib (the extra ``plot``)."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cardan.errors import CardanError, ModelError
from cardan.system.state import FloatArray

PICTURES = (".png", ".svg", ".pdf")
DPI = 120
MOST_LISTED = 12  # entries of a legend

INK = "#222222"


def check_file(path: str, suffixes: tuple[str, ...] | None = None) -> Path:
    """The path, checked to be writable; raises ModelError if it is not, and creates nothing."""
    if not path:
        raise ModelError("the file has no name; give one")
    if path == "-":
        raise ModelError("the file is '-'; output to stdout is --json: give the name of a file, or './-'")
    target = Path(path)
    if suffixes is not None and target.suffix.lower() not in suffixes:
        raise ModelError(f"the file is {path!r}; its name must end in {', '.join(suffixes)}")
    if target.is_dir():
        raise ModelError(f"the file is {path!r}, which is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise ModelError(f"the file is {path!r}, but there is no directory {str(target.parent)!r}; make it first")
    try:
        _try_to_open(target)
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"the file is {path!r}, which cannot be written ({reason}); choose another path") from None
    return target


def _try_to_open(target: Path) -> None:
    """Raise OSError if a file cannot be opened for writing; a new file is removed again, an old one is unchanged."""
    if not target.exists():
        target = target.resolve()  # a link to a file that does not exist yet
        with target.open("xb"):
            pass  # opening it is sufficient
        target.unlink()
    elif target.is_file():
        with target.open("ab"):
            pass
    elif not os.access(target, os.W_OK):  # a device or a pipe: opening it could end its reader
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert an OSError while writing into a CardanError that names the file and the reason."""
    try:
        yield
    except OSError as error:
        raise CardanError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def check_apart(*paths: Path | None) -> None:
    """Raise ModelError if two outputs have the same path, since the second would overwrite the first."""
    named = [path.absolute() for path in paths if path is not None]
    for k, path in enumerate(named):
        if path in named[:k] and not path.is_char_device() and not path.is_fifo():
            raise ModelError(f"two outputs have the same path {str(path)!r}; give each its own path")


def check_picture(path: str) -> Path:
    """A writable path for a picture; raises ModelError if it is not writable or matplotlib is not installed."""
    target = check_file(path, PICTURES)
    if find_spec("matplotlib") is None:
        raise ModelError("a picture needs matplotlib; install it with: pip install 'cardan[plot]'")
    return target


def new_figure(width: float, height: float) -> Any:
    """An empty figure; width and height in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: Path) -> None:
    """Write the figure; the suffix of the path selects the format."""
    with writing(path):
        figure.savefig(path, dpi=DPI)


def clean(axes: Any) -> None:
    """Remove the frame and add a light grid."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=INK)


def over_time(times: FloatArray, columns: Mapping[str, FloatArray]) -> Any:
    """Columns over time, one panel per unit; a title ends with its unit: "A [rad]"."""
    panels: dict[str, dict[str, FloatArray]] = {}
    for title, values in columns.items():
        name, _, unit = title.rpartition(" [")
        panels.setdefault(f"[{unit}", {})[name] = values
    figure = new_figure(8.0, 2.4 * max(len(panels), 1) + 0.4)
    for axes, (unit, lines) in zip(
        np.atleast_1d(figure.subplots(max(len(panels), 1), 1, sharex=True)), panels.items(), strict=False
    ):
        for name, values in lines.items():
            axes.plot(times, values, linewidth=1.2, label=name)
        axes.set_ylabel(unit, fontsize=8, color=INK)
        if len(lines) <= MOST_LISTED:
            axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        clean(axes)
    figure.axes[-1].set_xlabel("t [s]", fontsize=8, color=INK)
    return figure
