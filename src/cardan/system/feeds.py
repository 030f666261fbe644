"""Which formula of parameters gives which number of a mechanism, and the derivatives of these formulas.

    ∂result/∂parameter = Σ ∂result/∂number · ∂number/∂parameter

An adjoint collects the first factor by item, field and position; :func:`feeds` and :func:`slopes` give the second.

=============== ===================================================== ===========================================
field           position                                              the number in the tables
=============== ===================================================== ===========================================
mass            0                                                     ``Equations.masses[body, :3]``
center          0 to 2, in body axes                                  origin of the principal frame of the body
inertia         0 to 8, the matrix in body axes row by row            ``Equations.masses[body, 3:]``, and the axes
                                                                      of the principal frame
joint inertia   0                                                     ``Equations.joint_inertias.values``
gravity         0 to 2; the item is ""                                ``Equations.gravity``
numbers         of a law: a ``tables.Linear``, K and C of a bushing   ``Forces.floats`` from ``Law.numbers`` of its
                row by row                                            law on
point, vector   0 to 2, of a force or torque                          ``Forces.floats`` from ``Wrench.numbers`` on, in
                                                                      principal axes where they are in body axes
function        a formula in a function of time, in the order in      ``System.signals``, ``System.timed``
                which the function reads them
relation K      a float of the record of relation K of a joint, or    ``System.floats`` from ``par`` of the record
                load (:class:`~cardan.system.relations.Record`)       on, before points count from the centroids
angle KEY       a float of the record of a counted angle              ``System.floats``, behind those of relations
=============== ===================================================== ===========================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cardan.constraints import jets
from cardan.constraints.jets import Jet
from cardan.system.drawing import Drawing
from cardan.system.formulas import Values, formulas_in
from cardan.system.parts import MASS_WORDS
from cardan.system.state import FloatArray


class Feed(NamedTuple):
    """A number that is a formula: of a body, joint or load ``item``; ``node``: of its formula in the book."""

    item: str
    field: str
    position: int
    node: int


def feeds(drawing: Drawing) -> list[Feed]:
    """Every number of a mechanism that is a formula."""
    c = drawing.contents
    given = [(c.records[k].name, word, getattr(c.records[k], word)) for k in c.formed for word in MASS_WORDS]
    given += [(name, "joint inertia", value) for name, value in c.inertias.items()]
    given.append(("", "gravity", drawing.given_gravity))
    found = [Feed(item, field, k, one.index) for item, field, value in given for k, one in formulas_in(value)]
    for item in c.items():
        for k, relation in enumerate(item.relations):
            found += [Feed(item.name, f"relation {k}", *binding) for binding in relation.template.bindings]
            found += [Feed(item.name, "function", j, one.index) for j, one in enumerate(relation.template.used)]
            for angle in relation.counted_angles:
                found += [Feed(item.name, f"angle {angle.key}", *binding) for binding in angle.record().bindings]
    for load in c.loads.values():
        pairs = [(field, one) for field, numbers in load.action.numbers() for one in formulas_in(numbers)]
        found += [Feed(load.name, field, k, one.index) for field, (k, one) in pairs]
    return list(dict.fromkeys(found))


def slopes(values: Values, nodes: Sequence[int], names: Sequence[str]) -> FloatArray:
    """∂node/∂parameter of some nodes of the book by parameters, shape (nodes, names); NaN where it is not defined."""
    book = values.book
    units = dict(zip(names, np.eye(len(names)), strict=True))
    none = np.zeros(len(names))
    found: dict[int, Jet] = {}
    for index in sorted(book.below(nodes)):
        node = book.graph.nodes[index]
        arguments = [found[one.index] for one in node.arguments]
        rate = none
        if node.operation == "variable":
            rate = units.get(book.names[int(str(node.value)[1:])] or "", none)
        elif arguments:
            try:
                rate = _applied(node.operation, arguments).rate
            except (ArithmeticError, ValueError):
                rate = none * np.nan
        found[index] = Jet(values.nodes[index], rate)
    return np.array([found[node].rate for node in nodes]).reshape(len(nodes), len(names))


def _applied(operation: str, arguments: Sequence[Jet]) -> Jet:
    """An operation of a formula."""
    a, b = arguments[0], arguments[-1]
    name = operation.removeprefix("call ")
    if name == "power":
        made: Jet = a ** (b if b.rate.any() else b.value)
        return made
    if name == "atan2":
        return jets.atan2(a, b)
    if operation != name:
        return jets.function(name, a)
    return {"+": a + b, "-": a - b, "*": a * b}[name] if name in "+-*" else a / b
