"""The command line: ``cardan VERB``.  One module per verb; a new verb is a module and its name in ``VERBS``.

Exit codes: 0 done, 1 the answer is no (a mechanism is not assembled), 2 the call was wrong or an answer could not be
written, 130 interrupted.
Answers go to stdout, everything else to stderr.
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

VERBS = ("examples", "solve", "move", "study", "bench", "warmup")

WRONG_USE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE


class Verb(Protocol):
    """What the module of a verb holds."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, that of the process where none is given; returns the exit code, and raises nothing."""
    if sys.stderr is None:  # closed by the caller, who wants to hear nothing
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # it lives as long as the process
    if sys.stdout is None:
        _say("error: stdout is closed; the answer has no place to go: open it, or redirect it to a file")
        return WRONG_USE
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ° or ü gets a question mark, not a traceback
    try:
        code = _run(argv)
        sys.stdout.flush()  # a closed pipe or a full disk shows here, not in the interpreter's last breath
        return code
    except CardanError as error:
        _discard_stdout_if_full()
        _say(f"error: {error}")
        return WRONG_USE
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return PIPE_CLOSED
    except OSError as error:
        _discard_stdout()
        where = "to stdout" if error.filename is None else repr(error.filename)
        _say(f"error: cannot write {where}: {error.strerror or error}")
        return WRONG_USE


def _run(argv: Sequence[str] | None) -> int:
    try:
        args = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has said what there is to say
        return stop.code if isinstance(stop.code, int) else WRONG_USE
    verb: Verb = args.verb
    with _logging_to_stderr(logging.DEBUG if "verbose" in args else logging.INFO):
        return verb.run(args)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # a stderr that takes nothing leaves the exit code to tell
        print(f"cardan: {text}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="log what happens inside, to stderr"
    )
    parser = argparse.ArgumentParser(
        prog="cardan", description="Assembles, diagnoses and moves mechanisms.", parents=[common], allow_abbrev=False
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
    """The library's log on stderr while a verb runs; afterwards as before."""
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
    """Where stdout took nothing either, beside the error that is told."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_stdout()


def _discard_stdout() -> None:
    """What is still buffered has no reader: without this the interpreter complains when it exits."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: a stdout without a file, in tests
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


__all__ = ["VERBS", "Verb", "main"]
