"""The command line: ``cardan VERB``.  One module per verb; a new verb is a module and its line in ``VERBS``.

Exit codes: 0 success, 1 negative result (a mechanism is not assembled), 2 invalid call, or the output could not be
written, 130 interrupted.  Results go to stdout, everything else to stderr.  Only the module of the verb that is called
is imported, so that help and completion do not wait for the others.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from cardan import __version__
from cardan.cli import progress
from cardan.errors import CardanError

VERBS = {
    "examples": "list the gallery of mechanisms, assemble all of them, or copy one out",
    "view": "open the workbench in the browser",
    "solve": "assemble a mechanism",
    "check": "diagnose a mechanism: degrees of freedom, redundancy, conflicts",
    "move": "move a driven mechanism through time",
    "simulate": "simulate the motion of a mechanism under gravity and loads",
    "study": "compute many runs over values of parameters, on all cores or a cluster",
    "clash": "find parts that overlap, in one state or at any time of a motion",
    "convert": "write a mechanism as a model file",
    "export": "write a page in which a mechanism can be dragged, without Python or a server",
    "import": "make a model file of a STEP file, with the joints that its faces suggest",
    "papers": "repeat an experiment of the papers, or examine tolerances; in a checkout of the source",
    "bench": "measure the library on this machine",
    "warmup": "compile all kernels in advance, once for this version of the library",
    "completion": "print the completion script of a shell",
}
EXAMPLES = """examples:
  cardan examples                        list the gallery
  cardan examples copy planar_4r         write planar_4r.cardan.toml here
  cardan solve planar_4r.cardan.toml     assemble a mechanism in a file
  cardan check machine.py:build          diagnose what a function of a script returns
  cardan move slider_crank --csv out.csv"""

WRONG_USE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE


class Verb(Protocol):
    """The contents of the module of a verb."""

    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process; returns the exit code, and raises nothing."""
    if sys.stderr is None:  # closed by the caller
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open until the process ends
    if sys.stdout is None:
        _print_error("error: stdout is closed, so the result cannot be written: open it, or redirect it to a file")
        return WRONG_USE
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # print ? if the terminal has no ° or ü
    try:
        code = _run(argv)
        sys.stdout.flush()  # raises here, not at exit, for a closed pipe or a full disk
        return code
    except CardanError as error:
        _discard_stdout_if_full()
        _print_error(f"error: {error}")
        return WRONG_USE
    except ImportError as error:
        if error.name not in ("cardan.kernel", "numba"):  # kernels that can be neither loaded nor compiled
            raise
        _print_error(f"error: {error}")
        return WRONG_USE
    except MemoryError as error:
        _print_error(f"error: there is not enough memory: {error or 'ask for less'}")
        return WRONG_USE
    except KeyboardInterrupt:
        _print_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return PIPE_CLOSED
    except OSError as error:
        _discard_stdout()
        where = "to stdout" if error.filename is None else repr(error.filename)
        _print_error(f"error: cannot write {where}: {error.strerror or error}")
        return WRONG_USE


def _run(argv: Sequence[str] | None) -> int:
    given = sys.argv[1:] if argv is None else list(argv)
    verb_given = next((word for word in given if not word.startswith("-")), "")
    try:
        args = parser(verb_given).parse_args(given)
    except SystemExit as stop:  # argparse has printed the message
        return stop.code if isinstance(stop.code, int) else WRONG_USE
    verb: Verb = args.verb
    with _logging_to_stderr(logging.DEBUG if "verbose" in args else logging.INFO), progress.compiling():
        return verb.run(args)


def _print_error(text: str) -> None:
    with contextlib.suppress(OSError):  # if stderr cannot be written, only the exit code remains
        print(f"cardan: {text}", file=sys.stderr)


def parser(verb: str | None = None) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of one verb; of every verb if none is given."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="write a detailed log to stderr"
    )
    look: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    made = argparse.ArgumentParser(
        prog="cardan",
        description="Assembles, diagnoses, moves and simulates mechanisms.\n\n"
        "MODEL is a file (.cardan.toml, .json, .urdf, .xml of MuJoCo), a function of a script (machine.py:build), or\n"
        "a name of the gallery.  Exit status: 0 done, 1 the mechanism cannot do it, 2 invalid input, 130 interrupted.",
        epilog=EXAMPLES,
        parents=[common],
        **look,
    )
    made.add_argument("--version", action="version", version=f"cardan {__version__}")
    verbs = made.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name, text in VERBS.items():
        if verb is not None and name != verb:
            verbs.add_parser(name, help=text, add_help=False)
            continue
        module = cast(Verb, import_module(f"cardan.cli.{name}"))
        epilog = f"examples:\n{module.EXAMPLES}"
        sub = verbs.add_parser(name, help=text, description=_sentence(text), parents=[common], epilog=epilog, **look)
        module.add_arguments(sub)
        sub.set_defaults(verb=module)
    return made


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


@contextlib.contextmanager
def _logging_to_stderr(level: int) -> Iterator[None]:
    """Write the library's log to stderr while a verb runs."""
    log = logging.getLogger("cardan")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("cardan: %(message)s"))
    before = log.level
    log.addHandler(handler)
    log.setLevel(level)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def _discard_stdout_if_full() -> None:
    """Discard stdout if it cannot be written; another error has already been reported."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_stdout()


def _discard_stdout() -> None:
    """Discard buffered output; otherwise the interpreter reports an error at exit."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: a stdout without a file, in tests
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


__all__ = ["VERBS", "Verb", "main", "parser"]
