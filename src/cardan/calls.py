"""Calls with wrong arguments: an error of our own, with the nearest valid name, in place of Python's TypeError.

A public method is wrapped in a function that only passes its arguments on.  What is wrong with a call is found out when
Python has refused it, so that a valid call does not wait for a check.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from cardan.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def explained(function: F, name: str = "") -> F:
    """A function whose calls with wrong arguments raise an ArgumentError.  name: in the error, if not its own."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            trace = error.__traceback__
            if trace is not None and trace.tb_next is not None:  # raised within the function
                raise
            own = inspect.Signature(parameters_of(call))
            is_method = next(iter(own.parameters), "") == "self"
            problem = problem_of(own, args, options, is_method) or str(error)
            called = name or function.__name__
            if is_method and args and name != type(args[0]).__name__:  # of the class of the object, not of its base
                called = f"{type(args[0]).__name__}.{function.__name__}"
            raise ArgumentError(f"{called}: {with_help(problem, called)}") from None

    return call  # type: ignore[return-value]  # it has the signature of the function


def with_help(problem: str, called: str) -> str:
    """The problem, and where to read about the function."""
    return f"{problem} See help({called})" if problem.endswith("?") else f"{problem}; see help({called})"


def explains(*, besides: Sequence[str] = (), constructor: bool = False) -> Callable[[C], C]:
    """A decorator of classes: calls of all public methods are explained, and those of the constructor on request.

    besides: methods that are left as they are, since they are called thousands of times a second.
    """

    def wrapped(made: C) -> C:
        for word, function in list(vars(made).items()):
            if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
                continue
            if word == "__init__" and constructor:
                setattr(made, word, explained(function, made.__name__))
            elif not word.startswith("_") and word not in besides:
                setattr(made, word, explained(function))
        return made

    return wrapped


def problem_of(
    signature: inspect.Signature, args: Sequence[Any], options: Mapping[str, Any], is_method: bool = False
) -> str:
    """What is wrong with the arguments of a call, "" if nothing is.  is_method: the first argument is the object."""
    parameters = list(signature.parameters.values())[is_method:]
    args = args[is_method:]
    by_place = [p for p in parameters if p.kind in POSITIONAL]
    is_open = [p.kind for p in parameters]
    problem = "" if inspect.Parameter.VAR_KEYWORD in is_open else _unknown(parameters, options)
    problem = problem or _given_twice(by_place[: len(args)], options)
    if problem:
        return problem
    if len(args) > len(by_place) and inspect.Parameter.VAR_POSITIONAL not in is_open:
        others = [f"{p.name}=" for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
        most = f"{len(by_place)} at most, {', '.join(p.name for p in by_place)}," if by_place else "none"
        way = f"; give others by name: {', '.join(others[:6])}" if others else ""
        return f"{len(args)} arguments were given by their place; {most} may be{way}"
    given = {p.name for p in by_place[: len(args)]} | set(options)
    needed = [p for p in parameters if p.default is p.empty and p.kind in (*POSITIONAL, *NAMED)]
    missing = [repr(p.name) for p in needed if p.name not in given]
    return f"it was not given {' and '.join(filter(None, [', '.join(missing[:-1]), missing[-1]]))}" if missing else ""


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Of a function, with those of ``**options: Unpack[module.Kind]`` in the place of the options.

    The default of a flag is False, that of others 0.0.
    """
    found: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        module, _, word = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]").rpartition(".")
        kind = getattr(inspect.unwrap(function).__globals__.get(module), word, None)
        if parameter.kind is parameter.VAR_KEYWORD and kind is not None:
            for name, hint in kind.__annotations__.items():
                written = str(getattr(hint, "__forward_arg__", hint))
                default = False if written == "bool" else 0.0
                found.append(inspect.Parameter(name, parameter.KEYWORD_ONLY, default=default, annotation=written))
        else:
            found.append(parameter)
    return found


def _unknown(parameters: Sequence[inspect.Parameter], options: Mapping[str, Any]) -> str:
    """A name that no argument has, or that belongs to an argument without a name."""
    by_name = [p.name for p in parameters if p.kind in NAMED]
    first = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]
    for word in options:
        if word in first:
            return f"{word!r} is given by its place, without {word}="
        if word not in by_name:
            return f"no argument is named {word!r}; {offer(word, by_name)}"
    return ""


def _given_twice(taken: Sequence[inspect.Parameter], options: Mapping[str, Any]) -> str:
    """taken: the parameters that are given by their place."""
    twice = [p.name for p in taken if p.kind in NAMED and p.name in options]
    return f"{twice[0]!r} was given twice, by its place and by its name" if twice else ""


def offer(word: str, valid: Sequence[str]) -> str:
    """The names that are near to a word, or all of them."""
    from difflib import get_close_matches

    near = get_close_matches(word, valid, n=3)
    if near:
        return f"did you mean {', '.join(map(repr, near))}?"
    return f"it has {', '.join(map(repr, valid))}" if valid else "it has none that is given by name"
