"""Minimise a failing case: fewer joints and bodies, and rounder numbers, while the failure stays the same.

The known properties of a case are preserved: a proof is recomputed and must still hold, and for an "unsolved" failure
the reference pose must still satisfy every joint.
"""

from __future__ import annotations

import copy
import time

import numpy as np

from fuzz.judge import judge


def shrink(case, kind, *, seconds=20.0, fails=None):
    """The smallest case found within the time limit that still has a failure of ``kind``."""
    deadline = time.perf_counter() + seconds
    fails = fails or (lambda c: _fails(c, kind))
    if not fails(case):
        return case
    progress = True
    while progress and time.perf_counter() < deadline:
        progress = False
        for smaller in _smaller(case):
            if time.perf_counter() >= deadline:
                break
            if fails(smaller):
                case, progress = smaller, True
                break
    for digits in (1, 2, 3, 6):
        for change in (_round_starts, _round_geometry):
            for k in range(len(case.bodies) + len(case.joints)):
                if time.perf_counter() >= deadline:
                    return case
                rounder = change(copy.deepcopy(case), k, digits)
                if rounder is not None and rounder != case and fails(rounder):
                    case = rounder
    return case


def _fails(case, kind):
    found = judge(case).kinds
    return kind in found and (kind == "fuzzer wrong" or "fuzzer wrong" not in found)


def _smaller(case):
    """Cases with one body, one joint or one option less."""
    needed = set(case.proof["joints"]) if case.proof else set()
    for body in case.bodies:
        touching = {j.name for j in case.joints if body.name in (j.a.body, j.b.body)}
        if len(case.bodies) > 1 and not touching & needed:
            less = copy.deepcopy(case)
            less.bodies = [b for b in less.bodies if b.name != body.name]
            less.joints = [j for j in less.joints if j.name not in touching]
            for poses in (less.start, less.reference):
                if poses is not None:
                    poses.pop(body.name, None)
            yield less
    for joint in case.joints:
        if joint.name not in needed:
            less = copy.deepcopy(case)
            less.joints = [j for j in less.joints if j.name != joint.name]
            yield less
    if case.start is not None:
        less = copy.deepcopy(case)
        less.start = None
        yield less
    for option in case.options:
        less = copy.deepcopy(case)
        del less.options[option]
        yield less


def _rounded(values, digits):
    if values is None:
        return None
    made = []
    for v in values:
        size = 10.0 ** np.floor(np.log10(max(abs(x) for x in values) or 1.0))
        made.append(float(np.round(v / size, digits) * size) if size > 0 else v)
    return made if any(made) or not any(values) else values


def _round_starts(case, k, digits):
    if k >= len(case.bodies):
        return None
    body = case.bodies[k]
    body.position, body.orientation = _rounded(body.position, digits), _rounded(body.orientation, digits)
    if case.start is not None:
        case.start[body.name] = [_rounded(part, digits) for part in case.start[body.name]]
    return case


def _round_geometry(case, k, digits):
    k -= len(case.bodies)
    if k < 0:
        return None
    joint = case.joints[k]
    for end in (joint.a, joint.b):
        end.origin = _rounded(end.origin, digits)
        end.z, end.x = _rounded(end.z, digits), _rounded(end.x, digits)
        if end.z is not None and end.x is not None and np.linalg.norm(np.cross(end.z, end.x)) == 0.0:
            return None
    if "length" in joint.options:
        joint.options["length"] = _rounded([joint.options["length"]], digits)[0]
    return case
