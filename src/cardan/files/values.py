"""Values of a file, checked: tables, keys, numbers and expressions.  Problems are collected with their keys."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cardan.errors import ModelError
from cardan.files.formula import Formula, evaluated
from cardan.files.problems import MOST_PROBLEMS
from cardan.files.text import Path
from cardan.files.units import SI_UNITS, UNITS, Exact, Units
from cardan.system import check
from cardan.system import formulas as design
from cardan.system.formulas import are_floats

MOST_OPERATIONS: Final = 50_000  # in all expressions of a file together
_DECIMALS: Final = frozenset({Exact})  # the types in a list of decimals
MOST_NUMBERS: Final = 1000  # in a list
DEEPEST_SHOWN: Final = 4  # lists in lists, in a message
MOST_SHOWN: Final = 60  # of a list or table, in a message


@dataclass
class Source:
    """What a file said beyond the mechanism: units, named frames, and the texts of expressions with their values."""

    units: Units = SI_UNITS
    derived: dict[str, str] = field(default_factory=dict)  # parameters that are expressions of others
    frames: dict[tuple[str, str], Any] = field(default_factory=dict)
    faces: dict[tuple[str, str], Any] = field(default_factory=dict)  # named curves and surfaces, of contacts
    files: dict[tuple[Any, str], Any] = field(default_factory=dict)  # shapes in other files, by folder and path
    texts: dict[Path, tuple[Any, Any]] = field(default_factory=dict)


class Skip(Exception):
    """An item cannot be made; its problem has been reported."""


class Values:
    """The values of one document, and the problems found so far."""

    def __init__(self) -> None:
        self.problems: list[tuple[Path, str]] = []
        self.source = Source()
        self.constants: list[tuple[str, Any]] = []
        self.operations = 0

    def problem(self, path: Path, message: str) -> None:
        """Add an error at a key; too many of them end the reading."""
        self.problems.append((path, message))
        if self.has_enough:
            raise Skip

    @property
    def has_enough(self) -> bool:
        """Whether there are so many problems that the reading ends."""
        return len(self.problems) > 20 * MOST_PROBLEMS

    def _table(self, path: Path, value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            doubled = type(value) is list and value and type(value[0]) is dict
            name = ".".join(map(str, path)) + (".NAME" if len(path) == 1 else "")
            way = f": write [{name}] instead of [[…]]" if doubled else ""
            self.problem(path, f"it is {short(value)}; it must be a table of keys and values{way}")
            raise Skip
        return value

    def _vector(self, path: Path, value: Any, quantity: str, count: int, *, formulas: bool = False) -> Any:
        """A list of ``count`` numbers; lists in it are refused where it is used."""
        is_list = type(value) is list
        if is_list and len(value) == count and self._are_plain(value):
            return value
        if not is_list or (len(value) != count and not any(type(one) is list for one in value)):
            counted = f"it has {len(value)} number{'s' * (len(value) != 1)}, " if is_list else "it is "
            self.problem(path, f"{counted}{short(value)}; it must be a list of {count} numbers")
            raise Skip
        return self._numbers(path, value, quantity, formulas=formulas)

    def _place(self, path: Path, table: Mapping[str, Any], message: str) -> tuple[Path, str]:
        """The path of the key that a message is about, and the message, with the number as the file has it."""
        keys = [key for key in table if len(key) > 1 and key != "kind"]
        found = [(match.start(), key) for key in keys if (match := re.search(_about(key), message))]
        if not found:
            return path, message
        _, key = min(found)
        return (*path, key), message + self._in_file(table[key], message)

    def _in_file(self, value: Any, message: str) -> str:
        """An addition to a message that has a number in SI: the number as the file has it."""
        units = self.source.units
        for one in value if type(value) is list else [value]:
            if type(one) in (int, float, Exact) and (plain := repr(float(one))) not in message:
                in_si = [repr(units.to_si(one, quantity)) for quantity in UNITS]
                if any(number in message for number in in_si if number != plain):
                    return f" (in SI; the file has {short(value)})"
        return ""

    def _need(self, path: Path, table: Mapping[str, Any], known: Sequence[str], required: Iterable[str]) -> None:
        """As :meth:`_keys`, for an item that cannot be made if a key is missing."""
        if not self._keys(path, table, known, required):
            raise Skip

    def _keys(
        self,
        path: Path,
        table: Mapping[str, Any],
        known: Sequence[str],
        required: Iterable[str],
        what: str = "key here",
    ) -> bool:
        """Report unknown and missing keys; whether none is missing."""
        complete = True
        for key in table:
            if key not in known:
                self.problem((*path, key), str(check.unknown(key, what, known)))
        for key in required:
            if key not in table:
                self.problem(path, f"the key {key!r} is missing")
                complete = False
        return complete

    def _formula(
        self, path: Path, value: str, variables: Sequence[str], *, inner: bool = False, formulas: bool = False
    ) -> Formula:
        """A function; with ``formulas``, parameters stay parameters in it, else they have their present values."""
        constants = tuple(
            (key, number.value if isinstance(number, design.Formula) and not formulas else number)
            for key, number in self.constants
            if key not in variables
        )
        formula = Formula(value, tuple(variables), constants, inner)
        self._count(len(formula.program))
        return formula

    def _count(self, operations: int) -> None:
        self.operations += operations
        if self.operations > MOST_OPERATIONS:
            raise ModelError(f"the expressions of the file have more than {MOST_OPERATIONS:,} operations together")

    def _number(self, path: Path, value: Any, quantity: str, *, formulas: bool = False) -> Any:
        """A number; with ``formulas``, an expression of parameters stays one, else it has its present value."""
        kind = type(value)
        if kind is float and self.source.units.are_si:
            return float(value)
        if kind is str:
            try:
                self._count(1)
                number = evaluated(value, self.constants)
            except ModelError as error:
                self.problem(path, str(error))
                raise Skip from None
            is_formula = isinstance(number, design.Formula)
            if is_formula and not formulas:
                number = number.value
            self.source.texts[path] = (value, number.description() if is_formula and formulas else number)
            return number
        if kind in (int, float, Exact):
            try:
                return self.source.units.to_si(value, quantity)
            except (ArithmeticError, ValueError):
                pass  # out of range: the same message as for any other value
        self.problem(path, f'it is {short(value)}; it must be a number, or an expression such as "30*mm"')
        raise Skip

    def _are_plain(self, value: list[Any]) -> bool:
        """Whether a list has floats in SI units alone, as most lists do; a fast check."""
        return self.source.units is SI_UNITS and are_floats(value)

    def _numbers(
        self, path: Path, value: Any, quantity: str, depth: int = 0, *, formulas: bool = False, most: int = MOST_NUMBERS
    ) -> Any:
        """A number, or lists of numbers."""
        if type(value) is not list:
            return value if type(value) is tuple else self._number(path, value, quantity, formulas=formulas)
        if self._are_plain(value):
            return value
        if depth > 2 or len(value) > most:
            self.problem(path, "it is a list of too many numbers, or of lists in lists")
            raise Skip
        if _DECIMALS.issuperset(map(type, value)):
            with contextlib.suppress(ArithmeticError, ValueError):  # a number out of range is reported below
                to_si = self.source.units.to_si
                return [to_si(item, quantity) for item in value]
        return [self._numbers((*path, k), item, quantity, depth + 1, formulas=formulas) for k, item in enumerate(value)]


def _about(key: str) -> str:
    """A pattern of messages about a key: "the length is …", "the mass of …"."""
    return rf"(?<![\w.']){re.escape(key)}(?= is\b| of\b| has\b)"


def short(value: Any) -> str:
    """A value of a file as a text, at most 120 characters."""
    return check._short(shown(value))


def shown(value: Any, depth: int = 0) -> Any:
    """A value of a file for a message, with the words of TOML and JSON."""
    if isinstance(value, list | dict) and depth > DEEPEST_SHOWN:
        return _Word("…")
    if isinstance(value, list):
        return [shown(one, depth + 1) for one in value[:MOST_SHOWN]]
    if isinstance(value, dict):
        return {key: shown(one, depth + 1) for key, one in list(value.items())[:MOST_SHOWN]}
    if value is None:
        return _Word("null")
    return _Word(str(value).lower()) if isinstance(value, bool) else value


class _Word(str):
    """A word that is not quoted in messages."""

    def __repr__(self) -> str:
        return str(self)
