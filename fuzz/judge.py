"""The judge: errors of a pose with respect to a case, by the definitions of the joints (:mod:`.oracles.joints`).

It uses the description and the returned poses, not the library's residuals.  Lengths are in metres, angles in radians:

- aligned axes: the angle between them (π if opposed); equal orientations: the angle of the rotation between the frames;
  perpendicular axes and given angles: the difference of the true angle;
- distances: the difference of the true distance, also if the library solves the squared form.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from fuzz import proofs
from fuzz.case import EXPECT_FAILURE, EXPECT_OK, GROUND, build
from fuzz.geometry import axes, matrix
from fuzz.oracles.joints import JOINTS
from fuzz.parameters import with_values

RELATIVE = 1e-9  # "ok" with a larger error is false: lengths relative to the extent, angles [rad]
NO_LENGTH = 1e-12
ROUNDING = 256 * np.finfo(float).eps  # relative to the largest coordinate: rounding error of a pose
MOST_SECONDS = 10.0


def poses_of(source):
    """{body: (position, R)} of a State, or of {body: (position, quaternion)}."""
    found = {GROUND: (np.zeros(3), np.eye(3))}
    for name, pose in source.items():
        position, q = (pose.position, pose.quaternion) if hasattr(pose, "position") else pose
        found[name] = (np.asarray(position, dtype=float), matrix(q))
    return found


def world(end, poses):
    """Origin [m] and axes of a joint's end in world."""
    p, R = poses[end.body]
    if end.z is None:
        return p + R @ np.array(end.origin), R
    return p + R @ np.array(end.origin), R @ _local_axes(tuple(end.z), None if end.x is None else tuple(end.x))


@lru_cache(maxsize=4096)  # the same for every pose of a case
def _local_axes(z, x):
    return axes(z, x)


def misses(case, poses, angles=None):
    """Errors {joint: (length [m], angle [rad])}; angles: counted angles of the screws."""
    found = {}
    for joint in case.joints:
        (p_a, R_a), (p_b, R_b) = world(joint.a, poses), world(joint.b, poses)
        counted = (angles or {}).get(joint.name)
        found[joint.name] = JOINTS[joint.kind].misses(R_a.T @ (p_b - p_a), R_a.T @ R_b, joint.options, counted)
    return found


def components(case):
    """The joints of each piece (connected by bodies, not by the ground); each piece is judged by its own extent."""
    group = {b.name: b.name for b in case.bodies}

    def root(name):
        while group[name] != name:
            name = group[name]
        return name

    for joint in case.joints:
        if GROUND not in (joint.a.body, joint.b.body):
            group[root(joint.a.body)] = root(joint.b.body)
    found: dict[str, list] = {}
    for joint in case.joints:
        body = joint.a.body if joint.a.body != GROUND else joint.b.body
        found.setdefault(root(body), []).append(joint)
    return list(found.values())


def extent(case, joints, with_masses=False):
    """A length [m] that occurs in every assembled pose of the joints: a rod, or the distance of two points of a body.

    Never larger than the true extent.  If there is no such length: a pitch or an offset; else NO_LENGTH of the spread
    of the authored points, which says nothing about the parts, or 1.
    with_masses: whether the origins of bodies, where their centres of mass are, are points of them.
    """
    points: dict[str, list[list[float]]] = {}
    largest = 0.0
    for joint in joints:
        for end in (joint.a, joint.b):
            points.setdefault(end.body, []).append(end.origin)
            if with_masses and end.body != GROUND:
                points[end.body].append([0.0, 0.0, 0.0])
        largest = max(largest, joint.options.get("length", 0.0))
    largest = max([largest, *(_spread(np.array(group)) for group in points.values())])
    if largest > 0.0:
        return largest
    others = [abs(joint.options.get(name, 0.0)) for joint in joints for name in ("pitch", "offset")]
    if max(others, default=0.0) > 0.0:
        return max(others)
    return NO_LENGTH * drawn_spread(case, joints) or 1.0


def drawn_spread(case, joints):
    """Largest distance [m] of the authored points of joints."""
    poses = poses_of({b.name: (b.position, b.orientation) for b in case.bodies})
    return _spread(np.array([world(e, poses)[0] for j in joints for e in (j.a, j.b)]))


def _spread(cloud):
    """Largest distance between two points; points that differ only by rounding are treated as equal."""
    largest = 0.0
    for k in range(1, len(cloud)):
        differences = cloud[k:] - cloud[:-k]
        size = np.abs(differences).max()
        if size > ROUNDING * np.abs(cloud).max():
            largest = max(largest, float(size * np.sqrt(((differences / size) ** 2).sum(axis=1)).max()))
    return largest


def relative_misses(case, poses, found, with_masses=False):
    """{joint: error}: lengths minus the rounding of the coordinates, relative to the extent; angles [rad]."""
    result = {}
    for joints in components(case):
        size, rounding = extent(case, joints, with_masses), ROUNDING * _largest(joints, poses)
        for joint in joints:
            by_length, by_angle = found[joint.name]
            finite = np.isfinite(by_length) and np.isfinite(by_angle)
            result[joint.name] = max(max(0.0, by_length - rounding) / size, by_angle) if finite else np.inf
    return result


def relative_miss(case, poses):
    """The largest relative error of all joints."""
    return max(relative_misses(case, poses, misses(case, poses)).values(), default=0.0)


def _largest(joints, poses):
    """Largest coordinate [m] among the features of joints and the poses of their bodies."""
    ends = [e for j in joints for e in (j.a, j.b)]
    return max([0.0, *(abs(x) for e in ends for x in (*e.origin, *poses[e.body][0]))])


def unconnected(case):
    """Bodies that no chain of joints connects to the ground."""
    reached, found = {GROUND}, True
    while found:
        found = False
        for joint in case.joints:
            ends = {joint.a.body, joint.b.body}
            if ends & reached and not ends <= reached:
                reached |= ends
                found = True
    return {b.name for b in case.bodies} - reached


@dataclass
class Verdict:
    """The result of a case: failures as (kind, description), and statistics."""

    failures: list[tuple[str, str]] = field(default_factory=list)
    ok: bool = False
    status: str = ""
    seconds: float = 0.0
    restarts: int = 0
    with_masses: bool = False
    miss: float = np.inf

    @property
    def kinds(self):
        return [kind for kind, _ in self.failures]


# Kinds of failure.  The share of UNSOLVED must stay below a limit.  FALSE_CONFLICT (a reported contradiction that does
# not exist: the library calls it evidence, not proof) is only counted.  SELF is a defect of the fuzzer.  The others
# must not happen.
FALSE_OK, CRASH, NOT_FINITE, HANG, GRAPH, REPORT, UNSOLVED, FALSE_CONFLICT, SELF = (
    "false ok",
    "crash",
    "not finite",
    "hang",
    "unconnected wrong",
    "report wrong",
    "unsolved",
    "false conflict",
    "fuzzer wrong",
)
HARD = (FALSE_OK, CRASH, NOT_FINITE, HANG, GRAPH, REPORT, SELF)


def judge(case, *, diagnose=False):
    """Build the case, assemble it, and check every part of the result."""
    verdict = Verdict()
    bound = _check_case(case, verdict)
    began = time.perf_counter()
    try:
        m = build(case)
        start = None if case.start is None else {name: tuple(pose) for name, pose in case.start.items()}
        res = m.assemble(start, **case.options)
        verdict.ok, verdict.status, verdict.restarts = bool(res.ok), str(res.status), int(res.restarts)
        worst, text, listed = res.residuals, res.text(), set(res.unconnected)
        if diagnose:
            m.diagnose(res.state, free=case.options.get("free", ())).text()
    except Exception as error:
        verdict.failures.append((CRASH, f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"))
        return verdict
    verdict.seconds = time.perf_counter() - began
    if verdict.seconds > MOST_SECONDS:
        verdict.failures.append((HANG, f"{verdict.seconds:.1f} s, status {verdict.status}"))
    if not np.isfinite(res.state.coordinates).all():
        verdict.failures.append((NOT_FINITE, f"{text}\n{res.state.coordinates.tolist()}"))
        if verdict.ok:
            verdict.failures.append((FALSE_OK, "ok with non-finite coordinates"))
        return verdict
    norms = np.sqrt((res.state.quaternions**2).sum(axis=1))
    if np.abs(norms - 1.0).max(initial=0.0) > 1e-12:
        verdict.failures.append((REPORT, f"quaternions of length {norms.tolist()}"))
    poses = poses_of(res.state)
    if case.parameters:
        values = res.state.variables
        if not np.isfinite(list(values.values())).all():
            verdict.failures.append((NOT_FINITE, f"{text}\n{values}"))
            return verdict
        for p in case.parameters:
            lower, upper = p.get("bounds") or (-np.inf, np.inf)
            if verdict.ok and not lower <= values[p["name"]] <= upper:
                verdict.failures.append((FALSE_OK, f"{p['name']} is {values[p['name']]}, beyond {lower}, {upper}"))
            if not p["free"] and values[p["name"]] != p["value"]:
                verdict.failures.append((REPORT, f"{p['name']} is held, but has changed to {values[p['name']]}"))
        case = with_values(case, values)
    found = misses(case, poses, res.state.angles)
    relative = relative_misses(case, poses, found)
    verdict.miss = max(relative.values(), default=0.0)
    if verdict.ok:
        if verdict.miss > RELATIVE:
            name = max(relative, key=relative.__getitem__)
            by_length, by_angle = found[name]
            what = f"relative error {verdict.miss:.3g}; {name!r}: {by_length:.3g} m, {by_angle:.3g} rad"
            verdict.failures.append((FALSE_OK, what))
        elif case.expect == EXPECT_FAILURE:
            verdict.failures.append((FALSE_OK, "ok, although the case is proved inconsistent"))
    else:
        if case.expect == EXPECT_OK:
            verdict.failures.append((UNSOLVED, text))
        if verdict.status == "conflict" and case.reference is not None:
            verdict.failures.append((FALSE_CONFLICT, text))
    if bound is not None:
        reached = proofs.total(case, found)
        if not reached >= bound * (1 - 1e-6) - len(found) * ROUNDING * max(1.0, _largest(case.joints, poses)):
            what = f"by the proof the errors sum to at least {bound:.6g}, but they sum to {reached:.6g}"
            verdict.failures.append((SELF, what))
    if listed != unconnected(case):
        verdict.failures.append((GRAPH, f"reported {sorted(listed)}, expected {sorted(unconnected(case))}"))
    _check_report(case, found, poses, worst, verdict)
    return verdict


def _check_case(case, verdict):
    """Check that the reference satisfies the case and that the proof holds, both computed from the description."""
    if case.reference is not None:
        by = relative_miss(case, poses_of(case.reference))
        if by > 1e-10:
            verdict.failures.append((SELF, f"the reference pose has the error {by:.3g}"))
    if case.proof is None:
        if case.expect == EXPECT_FAILURE:
            verdict.failures.append((SELF, "no proof"))
        return None
    bound = proofs.bound(case)
    proved = set(case.proof["joints"])
    parts = [joints for joints in components(case) if any(j.name in proved for j in joints)]
    size = max(extent(case, joints) for joints in parts) if case.proof["unit"] == "m" else 1.0
    if not bound > 100 * RELATIVE * size * len(proved):
        verdict.failures.append((SELF, f"the proof gives a gap of only {bound:.3g} {case.proof['unit']}"))
    return bound


def _check_report(case, found, poses, worst, verdict):
    """Check the residuals in ``worst`` against the errors of the joints."""
    reported: dict[tuple[str, str], float] = {(v.name, v.unit): v.residual for v in worst}
    slack = ROUNDING * _largest(case.joints, poses) + 1e-300
    for joint in case.joints:
        by_length, by_angle = found[joint.name]
        for unit, value in (("m", by_length), ("rad", by_angle)):
            given = reported.get((joint.name, unit))
            if given is None:
                if value > slack and (joint.name, "m²") not in reported:
                    verdict.failures.append(
                        (REPORT, f"{joint.name!r} has the error {value:.3g} {unit} but is not in residuals")
                    )
                continue
            if unit == "m":
                wrong = abs(given - value) > 1e-6 * value + 4 * slack
            else:  # the chord near π and the sine near π/2 have only half the digits
                flat = value > 3.0 or (joint.kind in ("perpendicular", "universal") and value > 1.5)
                wrong = abs(given - value) > 1e-6 * value + 1e-7 * flat + RELATIVE
            if wrong:
                what = f"{joint.name!r} has the error {value:.9g} {unit}, but residuals lists {given:.9g}"
                verdict.failures.append((REPORT, what))
                return
