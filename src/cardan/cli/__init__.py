"""The command line: ``cardan VERB``.  One module per verb; a new verb is a module and its name in ``VERBS``.

Exit codes: 0 success, 1 negative result (a mechanism is not assembled), 2 invalid call, or the output could not be
written, 130 interrupted.  Results go to stdout, everything else to stderr.
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
from typing import Protocol, cast

from cardan import __version__
from cardan.errors import CardanError

VERBS = ("examples", "view", "solve", "move", "simulate", "study", "bench", "warmup")

WRONG_USE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE


class Verb(Protocol):
    """The contents of the module of a verb."""

    HELP: str

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
    try:
        args = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed the message
        return stop.code if isinstance(stop.code, int) else WRONG_USE
    verb: Verb = args.verb
    with _logging_to_stderr(logging.DEBUG if "verbose" in args else logging.INFO):
        return verb.run(args)


def _print_error(text: str) -> None:
    with contextlib.suppress(OSError):  # if stderr cannot be written, only the exit code remains
        print(f"cardan: {text}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="write a detailed log to stderr"
    )
    parser = argparse.ArgumentParser(
        prog="cardan",
        description="Assembles, diagnoses, moves and simulates mechanisms.",
        parents=[common],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cardan {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in VERBS:
        verb = cast(Verb, import_module(f"cardan.cli.{name}"))
        sub = verbs.add_parser(name, help=verb.HELP, description=verb.HELP, parents=[common], allow_abbrev=False)
        verb.add_arguments(sub)
        sub.set_defaults(verb=verb)
    return parser


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


__all__ = ["VERBS", "Verb", "main"]
