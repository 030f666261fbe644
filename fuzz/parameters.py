"""Numbers of a case as design parameters: some held, some free and drawn beside the value that fits.

A parameter is described as plain data: its name, its drawn value, a factor and a term, and the place in the case where
factor·value + term stands.  The numbers of the case itself remain those of its reference pose.
"""

from __future__ import annotations

import copy

import numpy as np

SHARE = 0.15  # of all cases have parameters
SOLVABLE = ("consistent", "redundant", "disconnected")  # families in which parameters may be free
MOST = 4
ZERO = 1e-12  # coordinates below this part of the largest are zero but for rounding
SMALL = 1e-2  # [m] in a smaller mechanism 2 P + 0.1 m has not the digits of its lengths: the term is 0.1 of the extent
BESIDE = 0.1  # standard deviation of a drawn value, relative to the one that fits
ROOM = (0.5, 1.5)  # least and most to each bound, relative to the value that fits; some bounds are near zero
BOUNDED = 0.3  # share of the free parameters that have bounds


def add_parameters(case, seed, index):
    """Give some numbers of a case to parameters; the case is otherwise the same."""
    rng = np.random.default_rng([seed, index, 16])
    if rng.random() >= SHARE:
        return
    largest = max([0.0, *(abs(x) for joint in case.joints for end in (joint.a, joint.b) for x in end.origin)])
    places = [place for joint in case.joints for place in _places(joint, ZERO * largest)]
    if not places:
        return
    may_be_free = case.family in SOLVABLE and "relative" not in case.options.get("formulation", "")
    order = rng.permutation(len(places))[: int(rng.integers(1, MOST + 1))]
    for k, number in enumerate(order.tolist()):
        factor, term = (2.0, 0.1) if rng.random() < 0.3 else (1.0, 0.0)
        if largest < SMALL and places[number][-1] != "angle":
            term *= largest
        fits = (_read(case, places[number]) - term) / factor
        is_free = bool(may_be_free and rng.random() < 0.7)
        made = {"name": f"P{k}", "value": fits, "factor": factor, "term": term, "place": places[number]}
        if is_free:
            made["value"] = float(fits * (1.0 + BESIDE * rng.standard_normal()))
            if places[number][-1] == "angle" and not 0.0 < factor * made["value"] + term < np.pi:
                made["value"] = fits  # the angle between two axes has no other values
            if rng.random() < BOUNDED:
                room = float(rng.uniform(*ROOM)) * abs(fits)
                made["bounds"] = [made["value"] - room, made["value"] + room]
        case.parameters.append({**made, "free": is_free})
    free = [p["name"] for p in case.parameters if p["free"]]
    if free:
        case.options["free"] = free
    case.variant += "+parameters"


def _places(joint, zero):
    """Places of numbers that are not zero: lengths, angles, pitches, and coordinates of points above rounding."""
    numbers = {key: value for key, value in joint.options.items() if not isinstance(value, bool)}
    found = [[joint.name, "options", key] for key, value in numbers.items() if value]
    for side, end in (("a", joint.a), ("b", joint.b)):
        found += [[joint.name, side, k] for k in range(3) if abs(end.origin[k]) > zero]
    return found


def _holder(case, place):
    name, where, key = place
    joint = next((j for j in case.joints if j.name == name), None)
    if joint is None:
        return None, key
    return (joint.options if where == "options" else getattr(joint, where).origin), key


def _read(case, place):
    holder, key = _holder(case, place)
    return holder[key]


def with_formulas(case, m):
    """A copy of the case with parameters of the mechanism in place of numbers; [] bounds mean none."""
    made = copy.deepcopy(case)
    for p in case.parameters:
        lower, upper = p.get("bounds") or (None, None)
        parameter = m.parameter(p["name"], p["value"], lower=lower, upper=upper)
        holder, key = _holder(made, p["place"])
        if holder is not None:
            holder[key] = parameter if p["factor"] == 1.0 and p["term"] == 0.0 else p["factor"] * parameter + p["term"]
    return made


class _Text(str):
    """A name in a program: written without quotes."""

    __repr__ = str.__str__


def with_names(case):
    """A copy of the case with names of a program in place of numbers."""
    made = copy.deepcopy(case)
    for p in case.parameters:
        holder, key = _holder(made, p["place"])
        if holder is not None:
            holder[key] = _Text(p["name"] if p["factor"] == 1.0 and p["term"] == 0.0 else f"{p['name']}_formula")
    return made


def with_values(case, values):
    """A copy of the case with the numbers that belong to some values of the parameters."""
    made = copy.deepcopy(case)
    for p in case.parameters:
        holder, key = _holder(made, p["place"])
        if holder is not None:
            holder[key] = p["factor"] * values[p["name"]] + p["term"]
    return made
