"""Expressions in model files: ``"2*pi*t"``, ``"u = clip(t/2, 0, 1); 0.3*u - 30*mm"``.

    program = { name "=" sum ";" } sum
    sum     = product { ("+" | "-") product }
    product = unary { ("*" | "/") unary }
    unary   = ("+" | "-") unary | power
    power   = atom [ ("^" | "**") unary ]
    atom    = number | name [ "." component ] | name "(" sum { "," sum } ")" | "(" sum ")"

The parser makes a list of instructions for a stack of values, which may be numbers, jets or traced values.  Text of a
file is never evaluated by Python.  Expressions are in metres, radians, kilograms and seconds; ``mm``, ``deg``, … are
constants.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cardan.constraints import functions
from cardan.constraints.expression import FUNCTIONS as TRACED
from cardan.constraints.expression import Scalar
from cardan.errors import ModelError
from cardan.system import check
from cardan.system import formulas as design

MOST_CHARACTERS: Final = 20_000  # of one expression
MOST_DEPTH: Final = 64  # of nested brackets, signs and powers
MOST_OPERATIONS: Final = 2_000  # of one expression: its derivatives are generated in less than a second

CONSTANTS: Final[Mapping[str, float]] = {
    "pi": math.pi,
    "m": 1.0,
    "cm": 1e-2,
    "mm": 1e-3,
    "um": 1e-6,
    "inch": 0.0254,
    "rad": 1.0,
    "deg": math.pi / 180.0,
    "turn": 2.0 * math.pi,
    "kg": 1.0,
    "g": 1e-3,
}
RESERVED: Final = ("pi", "cm", "mm", "um", "inch", "rad", "deg")  # a parameter must not have these names
ONE: Final = ("sin", "cos", "tan", "sqrt", "exp", "log", "asin", "acos", "atan", "sinh", "cosh", "tanh")
ARITY: Final[Mapping[str, int]] = {**dict.fromkeys(ONE, 1), "atan2": 2, "clip": 3}
# Functions that tracing produces and users do not write; they are allowed in the rows of a primitive.
INNER: Final[Mapping[str, int]] = {
    name: len(partials) for name, partials in TRACED.items() if name not in ARITY and name != "power"
}

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*(?:\.[wxyz](?!\w))?)"
    r"|(?P<sign>\*\*|[-+*/^(),;=])|(?P<end>$))"
)


class Token(NamedTuple):
    """A number, a name or a sign of an expression; ``column`` counts from 0."""

    kind: str
    text: str
    column: int


class Instruction(NamedTuple):
    """Push a number or a value (by index), apply an operator or a function of ``arity`` values, or define a name."""

    do: str  # "number", "value", "call", "define"
    what: Any
    arity: int = 0


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, float) and isinstance(b, float):
        return math.pow(a, b)  # ** would give a complex number for a root of a negative one
    return a**b


def _inner(name: str) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        graph = next((value.graph for value in values if isinstance(value, Scalar)), None)
        if graph is None:
            raise ModelError(f"{name} is for the rows of primitives; it needs a feature among its arguments")
        return graph.call(name, *(graph.lift(value) for value in values))

    return call


_APPLIED: Final[Mapping[str, Callable[..., Any]]] = {  # operators and functions, by their signs and names
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": _power,
    "negative": operator.neg,
    **{name: getattr(functions, name) for name in ARITY},
    **{name: _inner(name) for name in INNER},
}


class _Parser:
    """Recursive descent over the tokens; the depth is limited, and repeated operators are loops."""

    def __init__(self, text: str, names: Mapping[str, int], inner: bool) -> None:
        self.text = text
        self.names = dict(names)
        self.arity = {**ARITY, **INNER} if inner else ARITY
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0
        self.program: list[Instruction] = []

    def fail(self, message: str, token: Token | None = None) -> ModelError:
        column = (token or self.token).column
        return ModelError(f"the expression {_short(self.text)} at column {column + 1}: {message}")

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def take(self, *signs: str) -> Token | None:
        """The next token, if it is one of these signs."""
        token = self.token
        if token.kind == "sign" and token.text in signs:
            self.at += 1
            return token
        return None

    def expect(self, sign: str) -> None:
        if self.take(sign) is None:
            found = repr(self.token.text) if self.token.text else "the end"
            raise self.fail(f"{sign!r} is expected, not {found}")

    def emit(self, do: str, what: Any, count: int = 0) -> None:
        self.program.append(Instruction(do, what, count))
        if len(self.program) > MOST_OPERATIONS:
            raise self.fail(f"there are more than {MOST_OPERATIONS} operations; divide the expression")

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self.fail(f"it is nested more than {MOST_DEPTH} deep; define parts of it first: u = …; …")

    def parse(self) -> tuple[Instruction, ...]:
        while self.token.kind == "name" and self.tokens[self.at + 1].text == "=":
            name = self.token
            if "." in name.text or name.text in self.names:
                raise self.fail(f"{name.text!r} has a meaning already; choose another name")
            self.at += 2
            self.sum()
            self.expect(";")
            self.names[name.text] = len(self.names)
            self.emit("define", name.text)
        self.sum()
        if self.token.kind != "end":
            raise self.fail(f"an operator or the end is expected, not {self.token.text!r}{self._hint()}")
        return tuple(self.program)

    def _hint(self) -> str:
        """What two values without an operator probably mean."""
        before, token, *after = self.tokens[self.at - 1 : self.at + 2]
        if before.kind == "number" and token.kind == "name":
            return f"; a product needs its sign: {before.text}*{token.text}"
        if before.kind == "number" and token.text == "," and after and after[0].kind == "number":
            return f"; the decimal sign is a point: {before.text}.{after[0].text}"
        return ""

    def sum(self) -> None:
        self.enter()
        self.product()
        while sign := self.take("+", "-"):
            self.product()
            self.emit("call", sign.text, 2)
        self.depth -= 1

    def product(self) -> None:
        self.unary()
        while sign := self.take("*", "/"):
            self.unary()
            self.emit("call", sign.text, 2)

    def unary(self) -> None:
        sign = self.take("+", "-")
        if sign is None:
            self.power()
            return
        self.enter()
        self.unary()
        self.depth -= 1
        if sign.text == "-":
            last = self.program[-1]
            if last.do == "number":  # a negative number is a number, not an operation
                self.program[-1] = Instruction("number", -last.what)
            else:
                self.emit("call", "negative", 1)

    def power(self) -> None:
        self.atom()
        if self.take("^", "**"):
            self.enter()
            self.unary()
            self.depth -= 1
            self.emit("call", "^", 2)

    def atom(self) -> None:
        token = self.token
        self.at += 1
        if token.kind == "number":
            number = float(token.text)
            if not math.isfinite(number):
                raise self.fail(f"the number {token.text[:40]} is too large", token)
            self.emit("number", number)
        elif token.kind == "name" and self.token.text == "(":
            self.call(token)
        elif token.kind == "name":
            if token.text in self.names:
                self.emit("value", self.names[token.text])
            elif token.text in CONSTANTS:
                self.emit("number", CONSTANTS[token.text])
            else:
                what = "function without its arguments" if token.text in self.arity else "value"
                valid = self.arity if token.text in self.arity else [*self.names, *CONSTANTS]
                raise self.fail(str(check.unknown(token.text, what, valid)), token)
        elif token.text == "(":
            self.sum()
            self.expect(")")
        else:
            self.at -= 1
            found = repr(token.text) if token.text else "the end"
            raise self.fail(f"a number, a name or '(' is expected, not {found}", token)

    def call(self, name: Token) -> None:
        if name.text not in self.arity:
            raise self.fail(str(check.unknown(name.text, "function", self.arity)), name)
        self.expect("(")
        count = 1
        self.sum()
        while self.take(","):
            self.sum()
            count += 1
        self.expect(")")
        if count != self.arity[name.text]:
            raise self.fail(f"{name.text} takes {self.arity[name.text]} arguments, not {count}", name)
        self.emit("call", name.text, count)


def _tokens(text: str) -> list[Token]:
    if len(text) > MOST_CHARACTERS:
        raise ModelError(f"an expression has {len(text):,} characters; at most {MOST_CHARACTERS:,} are allowed")
    found: list[Token] = []
    at = 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            column = at + len(text[at:]) - len(text[at:].lstrip())
            valid = "expressions have numbers, names, + - * / ^ and functions"
            if text[column] == ".":
                valid += ", such as sin(t); .x, .y, .z and .w are the components of a feature of a primitive"
            raise ModelError(
                f"the expression {_short(text)} at column {column + 1}: {text[column]!r} has no meaning; {valid}"
            )
        kind = str(match.lastgroup)
        found.append(Token(kind, match.group(kind), match.start(kind)))
        if kind == "end":
            return found
        at = match.end()


def _short(text: str) -> str:
    return repr(text) if len(text) <= 60 else repr(text[:57] + "…")


@dataclass(frozen=True, slots=True)
class Formula:
    """A function of ``variables``, given by its text; ``constants`` are parameters of the file that it may use.

    It compares by value, can be pickled, and computes with numbers, jets and traced values.
    """

    text: str
    variables: tuple[str, ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()
    inner: bool = False
    program: tuple[Instruction, ...] = field(init=False, repr=False, compare=False)
    used: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = [*self.variables, *(name for name, _ in self.constants)]
        program = _Parser(self.text, {name: k for k, name in enumerate(known)}, self.inner).parse()
        object.__setattr__(self, "program", program)
        read = {step.what for step in program if step.do == "value"}
        object.__setattr__(self, "used", frozenset(name for k, name in enumerate(known) if k in read))
        kept = tuple(pair for pair in self.constants if pair[0] in self.used)
        if kept != self.constants:  # parameters that it does not use do not make it another function
            object.__setattr__(self, "constants", kept)
            known = [*self.variables, *(name for name, _ in kept)]
            again = _Parser(self.text, {name: k for k, name in enumerate(known)}, self.inner).parse()
            object.__setattr__(self, "program", again)

    def __call__(self, *values: Any) -> Any:
        known: list[Any] = [*values[: len(self.variables)], *(value for _, value in self.constants)]
        stack: list[Any] = []
        for do, what, count in self.program:
            if do == "number":
                stack.append(what)
            elif do == "value":
                stack.append(known[what])
            elif do == "define":
                known.append(stack.pop())
            else:
                arguments = stack[-count:]
                del stack[-count:]
                stack.append(_APPLIED[what](*arguments))
        return stack[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return Formula, (self.text, self.variables, self.constants, self.inner)

    def __deepcopy__(self, memo: Any) -> Formula:
        return self


@dataclass(frozen=True, slots=True)
class Formulas:
    """A function f(t, state) that returns three numbers, each a formula of t or a number."""

    parts: tuple[Formula | float, ...]

    def __call__(self, t: Any, state: Any = None) -> tuple[Any, ...]:
        return tuple(part(t) if isinstance(part, Formula) else part for part in self.parts)


def name_problem(name: str) -> str:
    """Why a parameter of this name cannot be used in expressions, "" if it can."""
    if not name.isidentifier():
        return "its name must be a word, such as L_1"
    if name in RESERVED or name in ARITY:
        what = "a function" if name in ARITY else f"the constant {CONSTANTS[name]:g}"
        return f"in expressions {name!r} is {what}; choose another name"
    return ""


def evaluated(text: str, constants: Sequence[tuple[str, Any]] = ()) -> Any:
    """The value of an expression without variables; a formula, if it depends on parameters of a mechanism."""
    formula = Formula(text, (), tuple(constants))
    try:
        value = formula()
    except (ArithmeticError, ValueError, TypeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the expression {_short(text)} has no value: {error}") from None
    number = value.value if isinstance(value, design.Formula) else value
    if not isinstance(number, float) or not math.isfinite(number):
        raise ModelError(f"the expression {_short(text)} is {number}; it must be finite")
    return value
