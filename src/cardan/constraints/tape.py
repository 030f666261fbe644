"""Tapes: recorded functions as tables of instructions, which a kernel of the library interprets (:mod:`._tape`).

A tape is made from the source of a generated kernel (:mod:`.codegen`), which all recorded functions have in common:
primitives, their promoted forms, rate rows, motions of joints, laws of loads, shapes.  The same statements are
otherwise compiled, so both results differ only by rounding.  It takes milliseconds, and needs no compiler.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Any, Final

import numpy as np

from cardan.constraints import tables
from cardan.constraints.tables import FIRST, OPERATIONS, Tape
from cardan.kernel.memory import address_of
from cardan.lazy import LazyModule

_tape = LazyModule("cardan.constraints._tape")

_LOADS: Final = {"x": tables.FEATURE, "rate": tables.RATE, "c": tables.PARAMETER}
_STORES: Final = {"f": tables.STORE, "g": tables.STORE, "out": tables.STORE, "df": tables.STORE_PARTIAL}
_CLEARS: Final = {tables.STORE: tables.CLEAR, tables.STORE_PARTIAL: tables.CLEAR_PARTIALS}
_ARITHMETIC: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_CODES: Final = {name: FIRST + k for k, name in enumerate(OPERATIONS)}


@cache
def address(text: str, name: str) -> int:
    """What stands in the tables for the kernel of that name in a generated module: ``RECORDED`` plus its tape."""
    definitions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    (found,) = [node for node in definitions if node.name == name]
    return tables.RECORDED + int(address_of(_kept(found.body).as_ints))


@cache
def address_of_statements(text: str) -> int:
    """The address of the tape of some statements."""
    return int(address_of(_kept(ast.parse(text).body).as_ints))


_tapes: dict[int, Tape] = {}  # by address, for the life of the process, as machine code


def at(address: int) -> Tape:
    """The tape at an address of :func:`address_of_statements`."""
    return _tapes[address]


def _kept(statements: list[ast.stmt]) -> Tape:
    made = assembled(statements)
    _tapes[int(address_of(made.as_ints))] = made
    return made


def assembled(statements: list[ast.stmt]) -> Tape:
    """The tape of the body of a generated kernel."""
    reader = _Reader()
    for statement in statements:
        reader.read(statement)
    lines, width = _placed(reader)
    run = _tape.RUN if width <= tables.NARROW else _tape.RUN_WIDE
    constants = np.array([*map(float, reader.constants), 0.0])
    made: Tape = Tape.new(open=lines.size, run=run, constants=constants, count=len(lines))
    made.as_ints[Tape.size :] = lines.ravel()
    return made


class _Reader:
    """Instructions whose operands are values, numbered as they are made; constants have the negative numbers −1, …"""

    def __init__(self) -> None:
        self.constants: dict[str, int] = {}  # by their text: 0.0 and -0.0 compare equal
        self.lines: list[tuple[int, int, tuple[int, ...]]] = []  # operation, target, operands
        self._values: dict[str, int] = {}
        self._count = 0

    def read(self, statement: ast.stmt) -> None:
        """Append the instructions of a statement."""
        match statement:
            case ast.Expr() | ast.Return():
                pass  # the docstring, and the status
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                is_view = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "view"
                if not is_view and name not in self._values:  # a name is that of a node, so its value is the same
                    self._values[name] = self._made(value)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=array), slice=place)], value=value):
                self.lines.append((_STORES[array], _index(place), (self._value(value),)))
            case ast.For(
                iter=ast.Call(args=[ast.Constant(value=int(count))]),
                body=[ast.Assign(targets=[ast.Subscript(value=ast.Name(id=array))])],
            ):
                self.lines.append((_CLEARS[_STORES[array]], 0, (count,)))
            case ast.If(test=ast.Compare(ops=[order], comparators=[ast.Constant(value=int(bound))]), body=body):
                self._read_part(bound + isinstance(order, ast.Gt), body)
            case _:
                raise NotImplementedError(f"a tape cannot do {ast.unparse(statement)!r}")

    def _read_part(self, order: int, body: list[ast.stmt]) -> None:
        """The statements for an order of derivatives; their names are not known afterwards."""
        known, jump = dict(self._values), len(self.lines)
        self.lines.append((0, 0, ()))
        for statement in body:
            self.read(statement)
        self.lines[jump] = tables.UNLESS, order, (len(self.lines) - jump - 1,)
        self._values = known

    def _made(self, value: ast.expr) -> int:
        """The number of the value of an expression, which is computed by one more instruction."""
        match value:
            case ast.Subscript(value=ast.Name(id=array), slice=place):
                return self._append(_LOADS[array], (_index(place),))
            case ast.BinOp(left=left, op=operator, right=right):
                return self._append(_CODES[_ARITHMETIC[type(operator)]], (self._value(left), self._value(right)))
            case ast.Call(func=ast.Name(id="unit3"), args=[ast.Constant(value=int(k)), *arguments]):
                return self._append(_CODES[f"unit3_{k}"], tuple(map(self._value, arguments)))
            case ast.Call(func=ast.Name(id="spline"), args=[_, ast.Constant(value=int(k)), argument]):
                return self._append(_CODES[f"spline_{k}"], (self._value(argument),))
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self._append(_CODES[function], tuple(map(self._value, arguments)))
        raise NotImplementedError(f"a tape cannot compute {ast.unparse(value)!r}")

    def _append(self, operation: int, operands: tuple[int, ...]) -> int:
        self.lines.append((operation, self._count, operands))
        self._count += 1
        return self._count - 1

    def _value(self, operand: ast.expr) -> int:
        """The number of a named value or of a constant."""
        match operand:
            case ast.Name(id=name):
                return self._values[name]
            case ast.Constant(value=float(number)):
                return self._constant(number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(number))):
                return self._constant(-number)
        raise NotImplementedError(f"a tape cannot read {ast.unparse(operand)!r}")

    def _constant(self, number: float) -> int:
        return self.constants.setdefault(repr(number), -1 - len(self.constants))


def _index(place: Any) -> int:
    return int(place.value)


def _placed(reader: _Reader) -> tuple[Any, int]:
    """The instructions with places in memory, and how many places: a place is used again after the last use of a value.

    Constants are loaded first, since a part that is skipped must not load one for others, and keep their places.
    """
    last: dict[int, int] = {}
    for k, (operation, _, operands) in enumerate(reader.lines):
        if operation in (tables.STORE, tables.STORE_PARTIAL) or operation >= FIRST:
            last.update(dict.fromkeys(operands, k))
    count = len(reader.constants)
    lines: list[tuple[int, ...]] = [(tables.CONSTANT, k, k, 0, 0, 0) for k in range(count)]
    places = {-1 - k: k for k in range(count)}
    free: list[int] = []
    width = max(count, 1)
    for k, (operation, target, operands) in enumerate(reader.lines):
        is_store = operation in (tables.STORE, tables.STORE_PARTIAL)
        if is_store or operation >= FIRST:
            given = [places[operand] for operand in operands]
            free += [places[operand] for operand in set(operands) if operand >= 0 and last[operand] == k]
        else:
            given = list(operands)
        if not is_store and operation not in (*_CLEARS.values(), tables.UNLESS):
            if not free:
                free.append(width)
                width += 1
            places[target] = target = free.pop()
        lines.append((operation, target, *given, *[0] * (4 - len(given))))
    return np.array(lines, dtype=np.int64), width
