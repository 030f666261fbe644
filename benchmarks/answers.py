"""Record the results of the library, and compare the results of two versions.

    python benchmarks/answers.py record FILE [--cases 20000] [--seed 7] [--jobs 2]
    python benchmarks/answers.py compare OLD NEW [--list 40]

It runs the ``cardan`` that Python imports, on the mechanisms of its gallery and on fuzz cases from the tree of this
file.  To record another tree, put it on the path: ``PYTHONPATH=../old/src python benchmarks/answers.py …``.
Only the public API is used, so trees with different internals can be compared.

gallery   each mechanism from its drawn start and STARTS random ones: ``auto`` in every formulation, every other method
          in ``manifold`` and, from the first few starts, in the other formulations; ``assemble_many``; sessions;
          its diagnosis; its driven motion; whether its facts hold
fuzz      case (seed, index) of the fuzzer, assembled with the options of the case; every 4th is diagnosed

``compare`` exits with code 0 if nothing differs except poses by less than 1e-12 of the extent.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections import defaultdict
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # use the fuzzer of this tree with any cardan

from fuzz import judge
from fuzz.case import build
from fuzz.generate import generate

STARTS = 20
FEW_STARTS = 4  # for the methods other than auto in the formulations other than manifold
SEED = 2024  # of the random starts
MOST_ITERATIONS = 200  # for the methods other than auto: gradient descent would use thousands
MOST_STEPS = 200
TIMES = 25  # times of a motion
DIAGNOSE_EVERY = 4
SAME = 1e-12  # of the extent: poses that differ by less are the same
SECONDS = 120.0  # a worker without a result for this long is killed
FIRST_SECONDS = 900.0  # the first result may include the compilation of kernels

POSES = ("drawn", "assembled")  # poses at which a mechanism of the gallery is diagnosed
METHODS = ("auto", "levenberg_marquardt", "newton", "newton_lu", "gradient", "hybrid")
FORMULATIONS = (
    "manifold",
    "euler_parameters",
    "relative",
    "relative_euler_parameters",
    "relative_virtual_rotation",
    "virtual_rotation",
    "euler_angles",
)


# -- one mechanism -----------------------------------------------------------------------------------------------------


def record(name: str, status: str, **found: Any) -> dict[str, Any]:
    """One result.  poses: (bodies, 7); more: other numbers; counts: integers that must be equal, by name."""
    plain = {"name": name, "status": status, "iterations": -1, "restarts": -1, "residual": math.nan, "extent": 1.0}
    return {**plain, "counts": {}, "poses": np.empty(0), "more": np.empty(0), **found}


def of_assembly(name: str, result: Any, extent: float, **found: Any) -> dict[str, Any]:
    return record(
        name,
        str(result.status),
        iterations=int(result.iterations),
        restarts=int(result.restarts),
        residual=float(result.residual),
        extent=extent,
        poses=np.array(result.state.coordinates).ravel(),
        more=np.array([result.state.angles[key] for key in sorted(result.state.angles)]),
        **found,
    )


def counts(diagnosis: Any) -> dict[str, Any]:
    return {
        "dof": int(diagnosis.dof),
        "undriven": int(diagnosis.undriven),
        "gruebler": int(diagnosis.gruebler),
        "rank": int(diagnosis.rank),
        "redundant": [[e.constraint, e.primitive, int(e.row)] for e in diagnosis.redundant],
        "certain": bool(diagnosis.certain),
        "assembled": bool(diagnosis.assembled),
    }


def results_of(name: str, answer: Any) -> list[dict[str, Any]]:
    """The results of a call; an exception is a result too."""
    from cardan import ModelError

    try:
        found = answer()
    except ModelError:
        return [record(name, "refused")]  # for example, the LU of a matrix that is too large
    except Exception as error:
        return [record(name, f"crash: {type(error).__name__}: {error}")]
    return found if isinstance(found, list) else [found]


def spread(m: Any) -> float:
    """Largest distance [m] between the authored origins of bodies and ground; 1 if it is zero."""
    points = np.array([(0.0, 0.0, 0.0), *(body.position for body in m.bodies.values())])
    return float(np.linalg.norm(points[:, None] - points[None], axis=2).max()) or 1.0


def random_starts(m: Any, extent: float) -> list[dict[str, Any]]:
    """The drawn start, then random ones: uniform orientations, positions within ± the extent of the drawn ones."""
    rng = np.random.default_rng(SEED)
    found: list[Any] = [None]
    for _ in range(STARTS):
        quaternions = rng.normal(size=(len(m.bodies), 4))
        quaternions /= np.linalg.norm(quaternions, axis=1)[:, None]
        offsets = rng.uniform(-extent, extent, (len(m.bodies), 3))
        bodies = m.bodies.items()
        found.append({n: (np.add(b.position, offsets[k]), quaternions[k]) for k, (n, b) in enumerate(bodies)})
    return found


def of_gallery(name: str, method: str, formulation: str) -> list[dict[str, Any]]:
    """Results of one mechanism of the gallery with one method and one formulation, for all starts."""
    from cardan import examples

    m = examples.REGISTRY[name].build()
    extent = spread(m)
    starts = random_starts(m, extent)
    if method != "auto" and formulation != "manifold":
        starts = starts[:FEW_STARTS]
    options = {} if method == "auto" else {"max_iterations": MOST_ITERATIONS}
    answers = []
    for k, start in enumerate(starts):
        label = f"gallery {name} {method} {formulation} start {k}"
        answers += results_of(
            label,
            lambda label=label, start=start: of_assembly(
                label, m.assemble(start, method=method, formulation=formulation, **options), extent
            ),
        )
    return answers


def of_session(name: str) -> list[dict[str, Any]]:
    import cardan as cd
    from cardan import examples

    m = examples.REGISTRY[name].build()
    extent = spread(m)

    def steps(label: str, start: Any) -> dict[str, Any]:
        session = m.session(start, closed=False)
        found = cd.SessionStatus.MOVING
        while found == cd.SessionStatus.MOVING and session.cycles < MOST_STEPS:
            found = session.step()
        words = {cd.SessionStatus.IDLE: "met", cd.SessionStatus.STUCK: "stalled"}
        status = words.get(found, "step limit")
        poses = np.array(session.state.coordinates).ravel()
        residual, iterations = float(session.residual), int(session.cycles)
        return record(label, status, iterations=iterations, residual=residual, extent=extent, poses=poses)

    answers = []
    for k, start in enumerate(random_starts(m, extent)):
        label = f"gallery {name} session start {k}"
        answers += results_of(label, lambda label=label, start=start: steps(label, start))
    return answers


def of_batch(name: str) -> list[dict[str, Any]]:
    from cardan import examples

    m = examples.REGISTRY[name].build()
    extent = spread(m)
    starts = [m.state if start is None else start for start in random_starts(m, extent)]
    label = f"gallery {name} assemble_many"

    def answer() -> list[dict[str, Any]]:
        found = m.assemble_many(starts, workers=1)
        return [
            record(
                f"{label} start {k}",
                str(found.status[k]),
                iterations=int(found.iterations[k]),
                restarts=int(found.restarts[k]),
                residual=float(found.residual[k]),
                extent=extent,
                poses=np.array(found.coordinates[k]).ravel(),
                more=np.array(found.angles[k]).ravel(),
            )
            for k in range(len(starts))
        ]

    return results_of(label, answer)


def of_pose(name: str) -> list[dict[str, Any]]:
    """Diagnosis in the drawn and the assembled pose, facts, and driven motion of one mechanism of the gallery."""
    from cardan import examples

    example = examples.REGISTRY[name]
    m = example.build()
    extent = spread(m)
    found = m.assemble()

    def motion() -> dict[str, Any]:
        moved = m.move([float(t) for t in np.linspace(0.0, example.duration, TIMES)], found.state)
        more = {"iterations": int(moved.steps), "extent": extent}
        if moved.state is not None:
            end = moved.state
            angles = [end.angles[key] for key in sorted(end.angles)]
            rates = [np.zeros(0) if a is None else np.ravel(a) for a in (end.velocities, end.accelerations)]
            more |= {
                "poses": np.array([state.coordinates for state in (*moved.states, end)]).ravel(),
                "more": np.concatenate([[end.time], angles, *rates]),
            }
        return record(f"gallery {name} motion", str(moved.status), **more)

    def facts() -> dict[str, Any]:
        example.facts(m, found)
        example.motion_facts(m, found)
        return record(f"gallery {name} facts", "hold")

    answers = []
    for where, state in zip(POSES, (None, found.state), strict=True):
        label = f"gallery {name} diagnosis {where}"
        answers += results_of(
            label, lambda label=label, state=state: record(label, "diagnosed", counts=counts(m.diagnose(state)))
        )
    answers += results_of(f"gallery {name} facts", facts)
    if example.duration:
        answers += results_of(f"gallery {name} motion", motion)
    return answers


def of_fuzz(seed: int, index: int) -> list[dict[str, Any]]:
    case = generate(seed, index)
    label = f"fuzz {case.family} {seed}/{index}"

    def answer() -> dict[str, Any]:
        m = build(case)
        start = None if case.start is None else {name: tuple(pose) for name, pose in case.start.items()}
        result = m.assemble(start, **case.options)
        found: dict[str, Any] = {}
        if result.ok:
            poses = judge.poses_of(result.state)
            solved = judge.with_values(case, result.state.variables) if case.parameters else case
            missed = judge.relative_misses(solved, poses, judge.misses(solved, poses, result.state.angles))
            found["false_ok"] = not max(missed.values(), default=0.0) <= judge.RELATIVE
        if index % DIAGNOSE_EVERY == 0 and np.isfinite(result.state.coordinates).all():
            found["counts"] = counts(m.diagnose(result.state))
        return of_assembly(label, result, judge.extent(case, case.joints), **found)

    return results_of(label, answer)


def tasks(cases: int, seed: int) -> list[tuple[Any, ...]]:
    """All tasks, each a function with its arguments; the longest first."""
    from cardan import examples

    found: list[tuple[Any, ...]] = []
    for name in examples.REGISTRY:
        found += [(of_gallery, name, method, formulation) for method in METHODS for formulation in FORMULATIONS]
        found += [(of_session, name), (of_batch, name), (of_pose, name)]
    return found + [(of_fuzz, seed, index) for index in range(cases)]


# -- workers -----------------------------------------------------------------------------------------------------------


def _work(pipe: Any) -> None:
    while (task := pipe.recv()) is not None:
        function, *arguments = task
        try:
            found = function(*arguments)
        except Exception as error:
            found = [record(_label(task), f"crash: {type(error).__name__}: {error}")]
        pipe.send(found)


def _label(task: tuple[Any, ...]) -> str:
    return " ".join([task[0].__name__.removeprefix("of_"), *map(str, task[1:])])


class Worker:
    """A process that runs one task at a time; if it dies, the result is a crash."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Any = None
        self.since, self.patience = 0.0, FIRST_SECONDS

    def give(self, task: Any) -> None:
        self.task, self.since = task, time.perf_counter()
        self.pipe.send(task)

    def late(self) -> bool:
        return time.perf_counter() - self.since > self.patience

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(todo: list[Any], jobs: int) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    todo, total, done = todo[::-1], len(todo), 0
    workers = [Worker() for _ in range(max(1, min(jobs, total)))]
    try:
        while todo or any(w.task is not None for w in workers):
            for w in workers:
                if w.task is None and todo:
                    w.give(todo.pop())
            busy = [w for w in workers if w.task is not None]
            ready = wait([w.pipe for w in busy], timeout=1.0)
            for k, w in enumerate(workers):
                if w.task is None:
                    continue
                status = ""
                if w.pipe in ready:
                    try:
                        answers += w.pipe.recv()
                        w.task, w.patience = None, SECONDS
                    except (EOFError, OSError):
                        w.process.join()
                        status = f"crash: the process ended with code {w.process.exitcode}"
                elif w.late():
                    status = f"crash: no result after {w.patience:.0f} s"
                else:
                    continue
                if status:
                    answers.append(record(_label(w.task), status))
                    w.stop()
                    workers[k] = Worker()
                done += 1
                if done % 1000 == 0:
                    print(f"{done}/{total}", file=sys.stderr, flush=True)
    finally:
        for w in workers:
            w.stop()
    return sorted(answers, key=lambda a: a["name"])


# -- files -------------------------------------------------------------------------------------------------------------


def save(path: Path, answers: list[dict[str, Any]], meta: dict[str, Any]) -> None:
    ends = {key: np.cumsum([a[key].size for a in answers]) for key in ("poses", "more")}
    with path.open("wb") as file:  # a file object, because NumPy appends .npz to a path
        np.savez_compressed(
            file,
            meta=np.array(json.dumps(meta)),
            name=np.array([a["name"] for a in answers]),
            status=np.array([a["status"] for a in answers]),
            iterations=np.array([a["iterations"] for a in answers]),
            restarts=np.array([a["restarts"] for a in answers]),
            residual=np.array([a["residual"] for a in answers]),
            extent=np.array([a["extent"] for a in answers]),
            false_ok=np.array([a.get("false_ok", False) for a in answers]),
            counts=np.array([json.dumps(a["counts"]) for a in answers]),
            poses=np.concatenate([a["poses"] for a in answers]),
            poses_end=ends["poses"],
            more=np.concatenate([a["more"] for a in answers]),
            more_end=ends["more"],
        )


def load(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """(metadata, {name: result})."""
    with np.load(path) as file:
        data = {key: file[key] for key in file.files}
    first = {key: np.concatenate([[0], data[f"{key}_end"][:-1]]) for key in ("poses", "more")}
    answers = {}
    for k, name in enumerate(data["name"].tolist()):
        answer = {key: data[key][k].item() for key in ("status", "iterations", "restarts", "residual", "extent")}
        answer |= {key: data[key][first[key][k] : data[f"{key}_end"][k]] for key in ("poses", "more")}
        answer |= {"counts": json.loads(data["counts"][k].item()), "false_ok": bool(data["false_ok"][k])}
        answers[name] = answer
    return json.loads(data["meta"].item()), answers


# -- comparison --------------------------------------------------------------------------------------------------------


def group(name: str) -> str:
    """Group of a result: gallery by method and formulation, or by the kind of task; fuzz by family."""
    words = name.partition(" start ")[0].split()
    return " ".join(words[:2] if words[0] == "fuzz" else [words[0], *(w for w in words[2:] if w not in POSES)])


def pose_difference(old: dict[str, Any], new: dict[str, Any]) -> float:
    """Largest difference of the poses, lengths relative to the extent; NaN in both is no difference."""
    if old["poses"].size != new["poses"].size:
        return math.inf
    if not old["poses"].size:
        return 0.0
    off = _off(old["poses"], new["poses"]).reshape(-1, 7)
    off[:, :3] /= old["extent"]
    return float(off.max())


def other_difference(old: dict[str, Any], new: dict[str, Any]) -> float:
    """Largest difference of the other numbers, relative to the largest of them or to one."""
    if old["more"].size != new["more"].size:
        return math.inf
    if not old["more"].size:
        return 0.0
    return float(_off(old["more"], new["more"]).max() / max(1.0, float(np.nan_to_num(np.abs(old["more"])).max())))


def _off(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    off = np.abs(a - b)
    off[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    off[np.isnan(off)] = np.inf
    return off


def is_bad(answer: dict[str, Any]) -> bool:
    """A crash, a non-finite number in an assembled pose, or a verdict that the judge refutes."""
    not_finite = answer["status"] == "assembled" and not np.isfinite(answer["poses"]).all()
    return answer["status"].startswith("crash") or not_finite or answer["false_ok"]


def compare(old_path: Path, new_path: Path, most: int) -> int:
    (old_meta, old), (new_meta, new) = load(old_path), load(new_path)
    print(f"old: {old_meta}\nnew: {new_meta}")
    lists: dict[str, list[str]] = defaultdict(list)
    table: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name in sorted(old.keys() ^ new.keys()):
        lists["only in one file"].append(f"{name} ({'old' if name in old else 'new'})")
    for name in sorted(old.keys() & new.keys()):
        a, b = old[name], new[name]
        row = table[group(name)]
        row["answers"] += 1
        for what in ("status", "iterations", "restarts"):
            if a[what] != b[what]:
                row[what] += 1
                lists[what].append(f"{name}: {a[what]} → {b[what]}")
        if a["counts"] != b["counts"]:
            row["counts"] += 1
            keys = [key for key in {**a["counts"], **b["counts"]} if a["counts"].get(key) != b["counts"].get(key)]
            changes = (f"{key} {a['counts'].get(key)} → {b['counts'].get(key)}" for key in keys)
            lists["diagnosis"].append(f"{name}: {', '.join(changes)}")
        by, by_more = pose_difference(a, b), other_difference(a, b)
        met = a["status"] == b["status"] and a["status"] in ("assembled", "met", "done")
        column = "met" if met else "unmet"
        row[column] = max(row[column], by, by_more)
        row["moved"] += by > 0 or by_more > 0
        for what, size in ((f"poses, {column}", by), (f"angles and rates, {column}", by_more)):
            if size > SAME:
                row["apart"] += 1
                lists[what].append(f"{name}: {size:.2e}")
        for which, answer in (("old", a), ("new", b)):
            if is_bad(answer):
                status = "false ok" if answer["false_ok"] else answer["status"]
                lists[f"crashes, NaN and false verdicts, {which}"].append(f"{name}: {status}")
                row["bad"] += which == "new"
    heads = ("answers", "status", "iterations", "restarts", "counts", "moved", "apart", "bad")
    width = max([len(key) for key in table] + [5])
    print(f"\n{'group':{width}} " + " ".join(f"{h:>10}" for h in heads) + "    met by  unmet by")
    differ = [
        (key, row) for key, row in sorted(table.items()) if any(value for k, value in row.items() if k != "answers")
    ]
    for key, row in [*differ, ("total", _total(table))]:
        numbers = " ".join(f"{int(row[h]):10}" for h in heads)
        print(f"{key:{width}} {numbers} {row['met']:9.1e} {row['unmet']:9.1e}")
    print(
        "\nstatus, iterations, restarts, counts (of the diagnosis): answers in which it differs"
        f"\nmoved: poses differ; apart: by more than {SAME:g} of the extent"
        "\nbad: crash, NaN or false verdict in new"
        "\nmet by, unmet by: largest difference if both are assembled, and otherwise"
    )
    for what, lines in lists.items():
        print(f"\n{what}: {len(lines)}")
        if what.startswith(("poses", "angles")):
            lines.sort(key=lambda line: -float(line.rsplit(": ", 1)[1]))
        for line in lines[:most]:
            print(f"  {line}")
        if len(lines) > most:
            print(f"  … and {len(lines) - most} more")
    same = not any(not what.endswith(", old") for what in lists)
    exact = same and not any(row["moved"] for row in table.values())
    print("\nbitwise identical" if exact else "\nthe same" if same else "\ndifferent")
    return 0 if same else 1


def _total(table: dict[str, dict[str, float]]) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for row in table.values():
        for key, value in row.items():
            found[key] = max(found[key], value) if key in ("met", "unmet") else found[key] + value
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--cases", type=int, default=20_000)
    recording.add_argument("--seed", type=int, default=7)
    recording.add_argument("--jobs", type=int, default=2)
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--list", type=int, default=40, help="results listed for each kind of difference")
    options = parser.parse_args()
    if options.command == "compare":
        return compare(options.old, options.new, options.list)
    import cardan

    began = time.perf_counter()
    answers = run(tasks(options.cases, options.seed), options.jobs)
    meta = {"cardan": cardan.__file__, "version": cardan.__version__, "cases": options.cases, "seed": options.seed}
    save(options.file, answers, meta)
    bad = [a for a in answers if is_bad({"false_ok": False, **a})]
    print(f"{options.file}: {len(answers)} answers of {meta} in {time.perf_counter() - began:.0f} s, {len(bad)} bad")
    for answer in bad[:40]:
        print(f"  {answer['name']}: {answer['status']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
