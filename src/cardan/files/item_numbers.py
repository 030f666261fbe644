"""Numbers that define the items of a mechanism, by which a mechanism is compared with that of a saved result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import numpy as np

from cardan.constraints.expression import digests
from cardan.constraints.signal import GivenRate, recorded
from cardan.dynamics.functions import Called, Recorded
from cardan.system.drawing import Drawing
from cardan.system.formulas import Formula, drawn_at, plain_at
from cardan.system.parts import BodyRecord
from cardan.system.state import FloatArray

SAME: Final = 1e-9  # relative: numbers of a model that another computer computes differ by less
ROUNDING: Final = 1e-15  # of components of unit vectors that are zero
MOST_NAMED: Final = 4  # items in a message
TINY: Final = 1e-300  # integers, if they are read as floats, are smaller


def numbers_of_items(drawing: Drawing) -> dict[str, FloatArray]:
    """By the kind and name of each body, joint, rate row and load: the numbers that define it as it is drawn.

    Masses, frames, parameters, shapes in contact, inertias of joints.  A function that can be recorded has a digest;
    others are not compared.  Poses as drawn, colours and gravity are left out: a result has its own poses and gravity.
    """
    c, nodes, inertias = drawing.contents, drawing.nodes, drawing.inertias
    found = of_bodies(drawing.records)
    places = drawing.places()
    for joint in (*c.joints.values(), *c.rate_rows.values()):
        frames = [np.frombuffer(place.floats).tolist() for end in places[joint.name] for place in end]
        of_relations = [list(_of_relation(relation, nodes)) for relation in joint.relations]
        own: tuple[Any, ...] = (_names(joint), frames, of_relations, inertias.get(joint.name, 0.0))
        if joint.name in c.frictions:
            law = c.frictions[joint.name]
            own = (*own, *law.kinetic, *law.static, law.length, law.width)
        if restitution := dict(joint.parameters).get("restitution"):
            own = (*own, restitution)
        found[f"{joint.kind.name} {joint.name!r}"] = _array(own)
    for load in c.loads.values():
        law, wrench, function = load.action.law, load.action.wrench, load.action.function
        of_features = [plain_at(feature.value, nodes) for relation in load.relations for feature in relation.features]
        told: list[Any] = [
            _names(load),
            of_features,
            () if law is None else drawn_at(tuple(law), nodes),
            _of_function(function),
        ]
        if wrench is not None:
            told += [wrench.is_torque, wrench.in_body, plain_at(wrench.point, nodes), plain_at(wrench.vector, nodes)]
        found[f"{load.kind.name} {load.name!r}"] = _array(told)
    for one in c.collisions.values():
        found[f"collide {one.name!r}"] = _array(one.description())
    return found


def of_bodies(records: Sequence[BodyRecord]) -> dict[str, FloatArray]:
    """The same of bodies alone."""
    return {f"body {record.name!r}": _of_body(record) for record in records}


def difference(told: Mapping[str, FloatArray], now: Mapping[str, FloatArray]) -> str:
    """Which items of a mechanism are not those of a result, in words; "" if all are the same."""
    words = [f"{name} is missing" for name in told if name not in now]
    words += [f"{name} is not of the result" for name in now if name not in told]
    for name in told:
        if name in now and not _are_same(told[name], now[name]):
            words.append(f"{name} differs")
    rest = len(words) - MOST_NAMED
    return ", ".join([*words[:MOST_NAMED], *([f"and {rest} more"] if rest > 0 else [])])


def _are_same(a: FloatArray, b: FloatArray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=SAME, atol=ROUNDING, equal_nan=True))


def _of_body(record: BodyRecord) -> FloatArray:
    inertia = () if record.inertia is None else np.asarray(record.inertia, dtype=np.float64).ravel().tolist()
    return _array((record.has_mass, record.mass, record.center, inertia))


def _of_relation(relation: Any, nodes: Any) -> Iterator[Any]:
    numbers = [x for x in relation.parameters if isinstance(x, float | int | Formula)]
    yield plain_at(numbers, nodes)
    timed = [function for _, function in relation.template.timed]
    for signal in (*timed, relation.signal):
        given = signal.signal if isinstance(signal, GivenRate) else signal
        yield _of_function(None if given is None else given.function)
    if relation.template.pair is not None:
        yield relation.template.pair.description()


def _of_function(function: Any) -> tuple[str, ...]:
    """A digest of what it computes, if it is recorded or can be recorded as a function of time."""
    if isinstance(function, Recorded):
        return tuple([one.hex() for one in digests(function.nodes, (function.row,))])
    if isinstance(function, Called):
        found = recorded(function.function, 1, None)
    else:
        found = None if function is None else recorded(function, 1)
    return () if found is None else tuple([one.hex() for one in found])


def _names(item: Any) -> list[str]:
    return [body.name for body in item.bodies]


def _array(value: Any) -> FloatArray:
    return np.array(list(_numbers(value)), dtype=np.float64)


def _numbers(value: Any) -> Iterator[float]:
    """The numbers in plain values; a text has four of its digest.  Objects are left out."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, bool | int | float | np.number):
        yield float(value)
    elif isinstance(value, np.ndarray):
        yield from _numbers(value.ravel().tolist())
    elif isinstance(value, bytes) and len(value) % 8 == 0:
        floats = np.frombuffer(value)
        yield from (floats if (np.abs(floats) >= TINY).any() else np.frombuffer(value, np.int64)).tolist()
    elif isinstance(value, str | bytes):
        digest = sha256(value.encode() if isinstance(value, str) else value).digest()
        yield from np.frombuffer(digest[:8], np.uint16).tolist()
