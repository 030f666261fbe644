"""Cheap mechanisms at extreme scales through every verb: ``python fuzz/run.py --extreme [--parts FOLDER]``.

A case of (seed, index) is a small mechanism of :mod:`fuzz.degenerate`, :mod:`fuzz.inconsistent` or a random one, with
lengths of 1e-9 … 1e9 m, masses of 1e-12 … 1e12 kg, and springs of up to 1e12 N/m.  Some lie far away, and the parts of
some are drawn far from their place.  One of the verbs is called.  Every state that it returns as met is judged by
:mod:`fuzz.judge`, in NumPy.

The following must not happen: a state with open joints that is said to be met; a number that is not finite; an
exception that is not a CardanError; a process that ends; more than 30 s of CPU time.

With a folder of parts, a part of 5000 cases is one file there when it is finished, with its seed, its range and its
counts.  A run that was stopped is resumed at the first part that has no file.
"""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from fuzz import degenerate, inconsistent
from fuzz.case import EXPECT_ANY, GROUND, build
from fuzz.geometry import quaternion, random_direction, random_rotation
from fuzz.judge import (
    CRASH,
    FALSE_OK,
    HANG,
    HARD,
    NOT_FINITE,
    RELATIVE,
    Verdict,
    components,
    drawn_spread,
    extent,
    judge,
    misses,
    poses_of,
    relative_misses,
)
from fuzz.sketch import scaled

PART = 5000  # cases of a part
PATIENCE = 150.0  # [s] of a worker without a result, on a machine with other work
MOST_CPU = 30.0  # [s] of a case
LIMIT = 3.0  # [s] max_seconds of the verbs that have it
OF_MOTIONS = 1e-12
BARS = {"simulate": 1e-6, "session": 1e-8}  # of the others: RELATIVE
VERBS = {
    "assemble": 0.5,
    "diagnose": 0.1,
    "many": 0.1,
    "session": 0.1,
    "move": 0.08,
    "equilibrium": 0.06,
    "simulate": 0.06,
}
PLACES = tuple(degenerate.VARIANTS[name] for name in ("one_place", "coincident_axes", "change_point", "collinear"))
OTHERS = tuple(f for name, f in degenerate.VARIANTS.items() if name not in ("extreme", "scale", "away"))
DRIVEN = ("revolute", "prismatic", "screw")


def generate(seed, index):
    """The case, the verb, a generator of random numbers for what else the verb needs, and a length [m] of the case."""
    rng = np.random.default_rng([seed, index, 32])
    verb = str(rng.choice(list(VERBS), p=list(VERBS.values())))
    if rng.random() < 0.12:
        case = inconsistent.draw(rng)
    elif rng.random() < 0.35:
        place = PLACES[rng.integers(len(PLACES))]
        case = place(rng, place.__name__)
    else:
        variant = OTHERS[rng.integers(len(OTHERS))]
        case = variant(rng, variant.__name__)
    if case.expect != "not ok":
        case.expect = EXPECT_ANY
    case.options = {"restarts": 3}
    case.seed, case.index, case.family = seed, index, f"extreme {verb}"
    return case, verb, rng, _stretch(rng, case)


def _stretch(rng, case):
    """Another unit of length, another place, and parts that are drawn far away; returns a length in this unit."""
    size = max(extent(case, case.joints), 1e-3)
    unit = 10.0 ** rng.uniform(-9, 9) / size
    away = np.zeros(3)
    if case.proof is None and rng.random() < 0.3:
        away = unit * size * 10.0 ** rng.uniform(0, 6) * random_direction(rng)
    poses = [case.reference, case.start]
    for table in [table for table in poses if table is not None]:
        for name, (position, q) in table.items():
            table[name] = [(unit * np.array(position) + away).tolist(), q]
    is_far = rng.random() < 0.4
    for body in case.bodies:
        far = unit * size * 10.0 ** rng.uniform(0, 12) * random_direction(rng) if is_far else 0.0
        body.position = (unit * np.array(body.position) + away + far).tolist()
    for joint in case.joints:
        joint.options = scaled(joint.kind, joint.options, unit)
        for end in (joint.a, joint.b):
            end.origin = (unit * np.array(end.origin) + (away if end.body == GROUND else 0.0)).tolist()
    return unit * size


def run_case(seed, index):
    """The outcome of a case."""
    from fuzz.run import Outcome

    case, verb, rng, size = generate(seed, index)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = _call(case, verb, rng, size)
    verdict.seconds = time.process_time() - began
    if verdict.seconds > MOST_CPU:
        verdict.failures.append((HANG, f"{verdict.seconds:.1f} s of CPU time, status {verdict.status}"))
    verdict.failures = [failure for failure in verdict.failures if failure[0] in HARD]
    return Outcome(index, case.family, case.variant, EXPECT_ANY, verdict)


def _call(case, verb, rng, size):
    import cardan as cd

    if verb == "assemble":
        verdict = judge(case)
        # a model that cannot be computed with is refused with a reason
        verdict.failures = [(k, w) for k, w in verdict.failures if not (k == CRASH and _is_ours(w))]
        verdict.failures = [(k, w) for k, w in verdict.failures if k != HANG]  # by CPU time, see run_case
        return verdict
    verdict = Verdict()
    try:
        for state in CALLS[verb](case, rng, size, verdict):
            _look(case, state, verdict, BARS.get(verb, RELATIVE))
    except cd.CardanError as error:
        verdict.status = f"refused: {type(error).__name__}"
    except Exception as error:  # whatever is not ours is a failure
        verdict.failures.append((CRASH, f"{verb}: {type(error).__name__}: {error}\n{traceback.format_exc(limit=-6)}"))
    return verdict


def _is_ours(what):
    import cardan as cd

    named = getattr(cd, what.split(":")[0], None)
    return isinstance(named, type) and issubclass(named, cd.CardanError)


def _look(case, state, verdict, bar):
    """Judge a state that is said to be met."""
    if not np.isfinite(state.coordinates).all():
        verdict.failures.append((NOT_FINITE, f"{verdict.status}: {state.coordinates.tolist()}"))
        return
    poses = poses_of(state)
    found = misses(case, poses, state.angles)
    relative = relative_misses(case, poses, found, verdict.with_masses)
    verdict.miss = max(relative.values(), default=0.0)
    verdict.ok = True
    name = max(relative, key=relative.__getitem__, default="")
    if bar > RELATIVE and verdict.miss > bar and found[name][1] <= bar:
        # motions of a mechanism without a length are closed relative to 1 m, or to its spread if that is smaller
        spread = max(drawn_spread(case, joints) for joints in components(case))
        verdict.miss = 0.0 if found[name][0] <= OF_MOTIONS * min(1.0, spread) else verdict.miss
    if verdict.miss > bar:
        what = f"relative error {verdict.miss:.3g}; {name!r}: {found[name][0]:.3g} m, {found[name][1]:.3g} rad"
        verdict.failures.append((FALSE_OK, f"{verdict.status}: {what}"))


def _start(case):
    return None if case.start is None else {name: tuple(pose) for name, pose in case.start.items()}


def _diagnose(case, rng, size, verdict):
    m = build(case)
    for state in (None, m.assemble(_start(case), **case.options).state):
        report = m.diagnose(state)
        report.text()
        verdict.status = f"assembled {report.assembled}, dof {report.dof}"
        if report.assembled:
            yield m.system.state() if state is None else state


def _many(case, rng, size, verdict):
    m = build(case)
    thrown = [
        {
            b.name: (np.array(b.position) + size * rng.normal(size=3), quaternion(random_rotation(rng)))
            for b in case.bodies
        }
        for _ in range(3)
    ]
    found = m.assemble_many([_start(case), *thrown], **case.options)
    for k, ok in enumerate(found.ok.tolist()):
        verdict.status = f"start {k}: {'ok' if ok else 'not ok'}"
        if ok:
            yield found.state(k)
        elif not np.isfinite(found.coordinates[k]).all():
            verdict.failures.append((NOT_FINITE, f"start {k}"))


def _session(case, rng, size, verdict):
    import cardan as cd

    m = build(case)
    mode = "kinematic"
    if rng.random() < 0.3:
        _give_masses(case, m, rng, size)
        mode = "dynamic"
        verdict.with_masses = True
    session = m.session(_start(case), mode=mode)
    hand = session.grasp(case.bodies[rng.integers(len(case.bodies))].name)
    for k in range(12):
        if k % 4 == 0:
            hand.target = hand.point + size * 10.0 ** rng.uniform(-3, 3) * random_direction(rng)
        status = cd.SessionStatus(session.step())
        verdict.status = status.name
        if mode == "kinematic" or status < cd.SessionStatus.STUCK:
            yield session.state


def _move(case, rng, size, verdict):
    m = build(case)
    joints = [joint for joint in case.joints if joint.kind in DRIVEN]
    if not joints:
        return
    joint = joints[rng.integers(len(joints))]
    rate = float(rng.normal() * (size if joint.kind == "prismatic" else 1.0))
    first = float(rng.normal() * (size if joint.kind == "prismatic" else 1.0)) if rng.random() < 0.5 else 0.0
    m.drive("motor", m[joint.name], lambda t: first + rate * t)
    motion = m.move([0.0, 0.1, 0.3, 0.6], _start(case), max_seconds=LIMIT)
    verdict.status = str(motion.status)
    yield from motion.states
    if motion.state is not None:
        yield motion.state


def _simulate(case, rng, size, verdict):
    m = build(case)
    _give_masses(case, m, rng, size)
    verdict.with_masses = True
    options = {"rtol": 1e-6} if rng.random() < 0.5 else {"step": 1e-3}
    run = m.simulate(0.02, _start(case), max_seconds=LIMIT, **options)
    verdict.status = str(run.status)
    yield from run.states


def _equilibrium(case, rng, size, verdict):
    m = build(case)
    _give_masses(case, m, rng, size)
    verdict.with_masses = True
    found = m.equilibrium(_start(case), max_iterations=60)
    verdict.status = str(found.ok)
    if found.ok:
        yield found.state


def _give_masses(case, m, rng, size):
    """Masses, and a spring from the ground to a body."""
    for body in case.bodies:
        m[body.name].mass = 10.0 ** rng.uniform(-12, 12)
        if rng.random() < 0.7:
            m[body.name].inertia = m[body.name].mass * (0.1 * size) ** 2 * np.eye(3)
    if rng.random() < 0.6:
        body = case.bodies[rng.integers(len(case.bodies))]
        stiffness = 10.0 ** rng.uniform(-12, 12)
        ends = m.ground.point(body.position), m[body.name].point((size, 0, 0))
        m.spring("spring", *ends, stiffness=stiffness, damping=stiffness * 1e-3, rest=float(size * rng.uniform(0, 2)))


CALLS = {
    "diagnose": _diagnose,
    "many": _many,
    "session": _session,
    "move": _move,
    "simulate": _simulate,
    "equilibrium": _equilibrium,
}


def run_parts(seed, first, cases, folder, *, jobs=1, log=print):
    """Run the parts that have no file yet; returns whether nothing failed in any part of the range."""
    from fuzz.run import Summary, _run

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    passed = True
    total: Counter[str] = Counter()
    for begin in range(first, first + cases, PART):
        end = min(begin + PART, first + cases)
        path = folder / f"extreme-{seed}-{begin}-{end}.json"
        if not path.exists():
            summary = Summary(seed)
            _run(summary, run_case, (seed,), range(begin, end), jobs, None, PATIENCE)
            if len(summary.outcomes) < end - begin:
                return False  # stopped
            path.write_text(json.dumps(_part(summary, begin, end), indent=1), encoding="utf-8")
            log(f"{path.name}: {end - begin} cases in {summary.seconds:.0f} s, failed {len(summary.hard)}", flush=True)
        part = json.loads(path.read_text(encoding="utf-8"))
        passed = passed and not part["failures"]
        total.update(part["counts"])
    log(f"seed {seed}, cases {first} … {first + cases - 1}: " + ", ".join(f"{k} {n}" for k, n in sorted(total.items())))
    return passed


def _part(summary, begin, end):
    """The file of a part."""
    counts: Counter[str] = Counter()
    for o in summary.outcomes:
        counts[o.family] += 1
        counts["met"] += o.verdict.ok
        for kind in set(o.verdict.kinds):
            counts[f"failed: {kind}"] += 1
    failures = [
        {"index": o.index, "case": f"{o.family}/{o.variant}", "what": [f"{k}: {w}" for k, w in o.verdict.failures]}
        for o in summary.hard
    ]
    slowest = max(summary.outcomes, key=lambda o: o.verdict.seconds)
    return {
        "seed": summary.seed,
        "first": begin,
        "last": end - 1,
        "seconds": summary.seconds,
        "slowest": [slowest.index, slowest.verdict.seconds],
        "counts": dict(sorted(counts.items())),
        "failures": failures,
    }
