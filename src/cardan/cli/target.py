"""MODEL on the command line: a file, a function of a script, or a name of the gallery."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import logging
import sys
import traceback
from pathlib import Path
from typing import Any, Final, NamedTuple

from cardan import checkout
from cardan.errors import CardanError, ModelError
from cardan.files import reader, spec
from cardan.mechanism import Mechanism
from cardan.system import check
from cardan.system.state import State

ROBOTS: Final = (".urdf", ".xml", ".mjcf")
REACHED: Final = "reached"  # name of the pose that -o saves
MOST_FRAMES: Final = 10_000_000  # times of a motion
BUILD: Final = "build"  # function of a script, if none is named

log = logging.getLogger("cardan")


class Target(NamedTuple):
    """A mechanism of the command line; ``duration`` [s] of its motion, 0 if it is not known."""

    mechanism: Mechanism
    name: str
    title: str
    duration: float


def add_target(parser: argparse.ArgumentParser, *, pose: bool = True) -> None:
    """The argument MODEL, and the saved pose to begin with."""
    text = "a file (.cardan.toml, .json, .urdf, .xml), script.py:function, or a name of the gallery"
    parser.add_argument("model", metavar="MODEL", help=text)
    parser.add_argument("--loops", metavar="FILE", help="of a URDF: a model file with the joints that close its loops")
    parser.add_argument("--floating", action="store_true", help="of a URDF: the root link is free, not fixed")
    if pose:
        parser.add_argument("--pose", metavar="NAME", help="begin with a pose that is saved in the file")


def read_target(args: argparse.Namespace) -> Target:
    """The mechanism that is meant by MODEL."""
    return find(args.model, args.loops, args.floating)


def find(given: str, loops: str | None = None, floating: bool = False) -> Target:
    """The mechanism of a file, of a function ``script.py:function``, or of the gallery; ModelError if there is none."""
    script, colon, function = given.rpartition(":")
    if given.endswith(".py"):
        script, colon, function = given, ":", BUILD
    if colon and script.endswith(".py"):
        made = from_script(Path(script), function)
        return Target(made, made.name, given, 0.0)
    check_robot_options(given, loops, floating)
    path = Path(given)
    suffix = path.suffix.lower()
    if suffix in spec.SUFFIXES:
        made = reader.load(path)
        return Target(made, made.name, given, 0.0)
    if suffix in ROBOTS:
        return _robot(path, loops, floating)
    return _example(given)


def check_robot_options(given: str, loops: str | None, floating: bool) -> None:
    """Refuse options of a URDF for anything else."""
    if (loops is not None or floating) and Path(given).suffix.lower() != ".urdf":
        raise ModelError(f"--loops and --floating are for a URDF, but MODEL is {given!r}; omit them")


def _example(name: str) -> Target:
    from cardan.examples import CAD, GALLERY, find

    example = find(name)
    if example is None:
        error = check.unknown(name, "example", [*GALLERY, *CAD])
        hint = "a file must end in .toml, .json, .urdf or .xml" if Path(name).exists() else ""
        raise type(error)(f"{error}{hint and '; ' + hint}")
    return Target(example.build(), example.name, example.title, example.duration)


def _robot(path: Path, loops: str | None, floating: bool) -> Target:
    from cardan.files import mjcf, urdf

    if path.suffix.lower() == ".urdf":
        made, report = urdf.load(path, loops=loops, floating=floating)
    else:
        made, report = mjcf.load(path)
    for line in report:
        log.info("%s", line)
    return Target(made, made.name, str(path), 0.0)


def from_script(path: Path, name: str) -> Mechanism:
    """What a function of a script returns, or a variable of it; what the script prints goes to stderr."""
    if not path.is_file():
        raise ModelError(f"there is no script {str(path)!r}")
    spec_of = importlib.util.spec_from_file_location(f"cardan_script_{path.stem}", path)
    assert spec_of is not None and spec_of.loader is not None
    module = importlib.util.module_from_spec(spec_of)
    sys.modules[spec_of.name] = module  # so that its functions can be pickled
    sys.path.insert(0, str(path.resolve().parent))
    checkout.add_path()  # a script of the gallery imports the others
    try:
        with contextlib.redirect_stdout(sys.stderr):
            spec_of.loader.exec_module(module)
            found = getattr(module, name, None)
            made = found() if callable(found) and not isinstance(found, Mechanism) else found
    except KeyboardInterrupt:
        raise
    except (Exception, SystemExit) as error:
        where = _where(error, path)
        is_call = isinstance(error, TypeError) and ", line " not in where  # the call of the function itself
        way = "; it is called without arguments" if is_call else ""
        raise CardanError(f"the script {where}: {type(error).__name__}: {error}{way}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    if found is None:
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise check.unknown(name, f"function of {str(path)!r}", names)
    if not isinstance(made, Mechanism):
        raise ModelError(f"{path}:{name} gives {check._short(made)}; it must return a cd.Mechanism")
    return made


def _where(error: BaseException, path: Path) -> str:
    """The script, and the last of its lines in a traceback."""
    lines = [
        f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == path.resolve()
    ]
    return f"{str(path)!r}, line {lines[-1]}" if lines else repr(str(path))


def start_of(args: argparse.Namespace, mechanism: Mechanism) -> State | None:
    """The saved pose of --pose."""
    if args.pose is None:
        return None
    if args.pose not in mechanism.poses:
        raise check.unknown(args.pose, "pose of the file", mechanism.poses)
    return mechanism.poses[args.pose]


def add_save(parser: argparse.ArgumentParser) -> None:
    """The option -o."""
    text = "write a model file (.cardan.toml, .json): the mechanism drawn in the last pose, saved as pose 'reached'"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)


def check_output(path: str | None) -> Path | None:
    """A writable path of a model file."""
    from cardan.cli import figures

    return None if path is None else figures.check_file(path, spec.SUFFIXES)


def save_reached(mechanism: Mechanism, state: State, path: Path) -> None:
    """Write the mechanism with a state as its authored poses, and as a pose with its time and whole turns."""
    reached = mechanism.copy()
    for name, body in reached.bodies.items():
        pose = state[name]
        body.position, body.orientation = pose.position, pose.quaternion
    reached.poses[REACHED] = state
    reached.save(path)


def write_rows(path: Path, titled: dict[str, Any]) -> None:
    """Columns under their titles as CSV."""
    from cardan.analysis import output
    from cardan.cli import figures

    with figures.writing(path):
        output.write_csv(path, titled)


def check_frames(count: int, least: int) -> None:
    """Whether a number of times can be asked for; else ModelError."""
    if count < least:
        raise ModelError(f"--frames is {count}; it must be {least} or more")
    if count > MOST_FRAMES:
        raise ModelError(f"--frames is {count}; it must be {MOST_FRAMES:,} or less, which take gigabytes of memory")
