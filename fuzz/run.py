"""Fuzz the library with random mechanisms, judged by an independent computation of the errors.

    python fuzz/run.py [--cases 20000] [--seed 0] [--jobs 2] [--only N …] [--out fuzz/found] [--replay FILE]
    python fuzz/run.py --extreme --parts FOLDER [--cases 20000] [--first 0] [--seed 0] [--jobs 2]
    python fuzz/run.py --solvable [--starts 3] [--cases 200000] [--first 0] [--jobs 2] [--list fuzz/found/starts.json]
                       [--uniform]

A case is determined by (seed, index).  It belongs to one of five families:

consistent    random trees with closed loops and every kind of joint, generated in a pose that satisfies all joints
redundant     duplicated joints, planar and spherical linkages, Bennett, Bricard, Sarrus, doors on many hinges
inconsistent  no pose satisfies it; the proof is part of the case (fuzz/proofs.py), with a bound on the errors
disconnected  several pieces, some not connected to the ground, and bodies without joints
degenerate    dead points, coincident axes, lengths near zero, extreme scales and positions, starts at saddle points

In some cases of each family numbers are design parameters (fuzz/parameters.py): held, or free and drawn beside the
value that fits.  The judge then uses the values of the final state.

Each case is assembled in a worker process.  The following must not happen: an exception; a non-finite number; more than
10 s; "ok" if the judge (fuzz/judge.py: NumPy, from the description and the returned poses) finds an error above 1e-9 or
the case is proved inconsistent; a wrong list of unconnected bodies; a wrong residual of one.  At least 99.9 % of
the cases with a known solution that are not degenerate must be solved.

With ``--solvable``, every case has a known solution and is assembled from several starts (fuzz/starts.py), with
``--uniform`` from uniformly random ones.  None may be called a conflict, or be said to fit nearly, and at least 99.95 %
of the starts must be solved.  All others are listed in a JSON file.

With ``--extreme``, cheap mechanisms at extreme scales pass through every verb, in parts that are resumed
(fuzz/extreme.py).

Otherwise each failure is minimised and written to ``--out``: a JSON file for ``--replay``, and a program that needs
only the library.  Ctrl-C stops the run and prints the results so far.  The exit code is 0 if nothing failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1])
)  # so that the package is found when this file is run as a script

from fuzz import extreme, starts
from fuzz.case import Case, snippet
from fuzz.generate import generate
from fuzz.judge import FALSE_CONFLICT, HANG, HARD, MOST_SECONDS, UNSOLVED, Verdict, judge
from fuzz.shrink import shrink

SOLVED_BAR = 0.999
KILL_SECONDS = MOST_SECONDS + 5.0  # a worker without a result for this long is killed
FIRST_SECONDS = 300.0  # a worker may have to compile the kernels before its first case
DIAGNOSE_EVERY = 4
SHRINK_EACH = 2  # failures to minimise per family, variant and kind; the others are written unchanged
WRITE_EACH = 10


@dataclass
class Outcome:
    """The result of a case, as sent by a worker."""

    index: int
    family: str
    variant: str
    expect: str
    verdict: Verdict


@dataclass
class Summary:
    """All outcomes so far."""

    seed: int
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, outcome):
        self.outcomes.append(outcome)

    @property
    def hard(self):
        return [o for o in self.outcomes if any(kind in HARD for kind in o.verdict.kinds)]

    @property
    def unsolved(self):
        return [o for o in self.outcomes if UNSOLVED in o.verdict.kinds]

    @property
    def false_conflicts(self):
        return [o for o in self.outcomes if FALSE_CONFLICT in o.verdict.kinds]

    @property
    def solvable(self):
        return [o for o in self.outcomes if o.expect == "ok"]

    @property
    def failed(self):
        """All outcomes with failures, the severe ones first."""
        return sorted(
            (o for o in self.outcomes if o.verdict.failures), key=lambda o: not any(k in HARD for k in o.verdict.kinds)
        )

    @property
    def passed(self):
        return not self.hard and len(self.unsolved) <= (1 - SOLVED_BAR) * len(self.solvable)

    def text(self):
        """Table of counts per family and variant, then a list of failures."""
        rows: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
        for o in self.outcomes:
            rows[o.family, ""].append(o)
            rows[o.family, o.variant].append(o)
        lines = ["family               cases     ok  solvable  unsolved  failed  restarts  mean ms   max s"]
        for (family, variant), found in sorted(rows.items()):
            times = [o.verdict.seconds for o in found]
            hard = sum(any(kind in HARD for kind in o.verdict.kinds) for o in found)
            solvable = [o for o in found if o.expect == "ok"]
            restarts = sum(o.verdict.restarts for o in solvable) / max(1, len(solvable))
            lines.append(
                f"{family if not variant else '  ' + variant:19} {len(found):6} {sum(o.verdict.ok for o in found):6} "
                f"{len(solvable):9} {sum(UNSOLVED in o.verdict.kinds for o in found):9} {hard:7} {restarts:9.3f} "
                f"{1e3 * sum(times) / len(times):8.2f} {max(times):7.2f}"
            )
        kinds = Counter(kind for o in self.outcomes for kind in set(o.verdict.kinds) if kind in HARD)
        lines.append(f"must not happen: {', '.join(f'{kind} {n}' for kind, n in kinds.items()) or 'none'}")
        solvable, missed = len(self.solvable), len(self.unsolved)
        if solvable:
            share = 100 * (1 - missed / solvable)
            lines.append(f"with a known solution: {solvable}; not solved: {missed} ({share:.3f} % solved)")
        lines.append(f"conflict reported although there is a solution: {len(self.false_conflicts)}")
        for o in self.failed[:40]:
            kind, what = o.verdict.failures[0]
            lines.append(f"  case {o.index} {o.family}/{o.variant}: {kind}: {what.splitlines()[0][:140]}")
        lines.append(f"{len(self.outcomes)} cases of seed {self.seed} in {self.seconds:.0f} s")
        return "\n".join(lines)


def run_case(seed, index):
    """Generate and judge one case."""
    case = generate(seed, index)
    return Outcome(index, case.family, case.variant, case.expect, judge(case, diagnose=index % DIAGNOSE_EVERY == 0))


def warm():
    """Compile or load every kernel that the cases use, so that their times do not include it."""
    import cardan as cd

    for count in (1, 12):  # small and large systems use different kernels
        m = cd.Mechanism("warm")
        last = m.ground
        for k in range(count):
            last, before = m.body(f"b{k}", position=(0.1 * k, 0.2, 0.3)), last
            m.spherical(f"j{k}", before.point((1, 0, 0)), last.point((0, 0, 0)))
        m.distance("too long", m.ground.point(), last.point(), 10.0 * count)
        for formulation in ("manifold", "euler_parameters", "relative", "relative_euler_parameters"):
            for method in ("auto", "levenberg_marquardt", "newton", "gradient", "hybrid"):
                m.assemble(formulation=formulation, method=method, max_iterations=20)
        m.diagnose(m.assemble(max_iterations=20).state)


def _work(pipe, task, arguments):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    warm()
    pipe.send(None)
    while (index := pipe.recv()) is not None:
        pipe.send(task(arguments[0], index, *arguments[1:]))


class Worker:
    """A process that judges one case at a time and can be killed during a case."""

    def __init__(self, task, arguments, patience=KILL_SECONDS):
        """task(seed, index, …): makes an outcome; arguments: the seed and what follows the index.

        patience [s]: after that time without a result the worker is late.
        """
        self.patience = patience
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, task, arguments), daemon=True)
        self.process.start()
        theirs.close()
        self.index: int | None = None
        self.since = 0.0
        try:
            ready = self.pipe.poll(FIRST_SECONDS) and self.pipe.recv() is None
        except EOFError:
            ready = False
        if not ready:
            self.stop()
            raise RuntimeError("a worker did not start: the library cannot be imported, or its kernels do not compile")

    def give(self, index):
        self.index, self.since = index, time.perf_counter()
        self.pipe.send(index)

    def late(self):
        return self.index is not None and time.perf_counter() - self.since > self.patience

    def stop(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(seed, indices, *, jobs=2, progress=None):
    """Judge the cases with the given indices; returns a :class:`Summary`, partial after Ctrl-C."""
    summary = Summary(seed)
    _run(summary, run_case, (seed,), indices, jobs, progress)
    return summary


def run_starts(seed, indices, count, *, uniform=False, jobs=2, progress=None):
    """Assemble solvable cases from ``count`` starts each; returns a :class:`fuzz.starts.Report`."""
    report = starts.Report(seed, count)
    _run(report, starts.run_case, (seed, count, uniform), indices, jobs, progress)
    return report


def _run(summary, task, arguments, indices, jobs, progress, patience=KILL_SECONDS):
    """Add the outcomes of the cases with the given indices to a summary."""
    todo = list(reversed(list(indices)))
    workers: list[Worker] = []
    try:
        workers += [Worker(task, arguments, patience) for _ in range(max(1, min(jobs, len(todo))))]
        began = time.perf_counter()
        while todo or any(w.index is not None for w in workers):
            for w in workers:
                if w.index is None and todo:
                    w.give(todo.pop())
            busy = [w for w in workers if w.index is not None]
            ready = wait([w.pipe for w in busy], timeout=1.0)
            for k, w in enumerate(workers):
                if w.pipe in ready:
                    try:
                        summary.add(w.pipe.recv())
                        w.index = None
                        continue
                    except (EOFError, OSError):
                        what = ("crash", f"the process ended with code {w.process.exitcode}")
                elif w.late():
                    what = (HANG, f"no result after {patience:.0f} s; process killed")
                else:
                    continue
                summary.add(_lost(task, arguments[0], w, what))
                w.stop()
                workers[k] = Worker(task, arguments, patience)
            summary.seconds = time.perf_counter() - began
            if progress is not None:
                progress(summary)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
    finally:
        for w in workers:
            w.stop()
    summary.outcomes.sort(key=lambda o: o.index)


def _lost(task, seed, worker, what):
    """The outcome of a case whose process ended or was killed."""
    seconds = time.perf_counter() - worker.since
    if task is starts.run_case:
        return starts.lost(seed, worker.index, *what, seconds)
    case = extreme.generate(seed, worker.index)[0] if task is extreme.run_case else generate(seed, worker.index)
    return Outcome(worker.index, case.family, case.variant, case.expect, Verdict([what], seconds=seconds))


def write_failures(summary, folder, *, log=print):
    """Minimise failures and write each as JSON and as a program; returns the paths."""
    folder = Path(folder)
    count: Counter[Any] = Counter()
    written = []
    for o in summary.failed:
        kind = next((k for k in o.verdict.kinds if k in HARD), o.verdict.kinds[-1])
        key = o.family, o.variant, kind
        count[key] += 1
        if count[key] > WRITE_EACH:
            continue
        case = generate(summary.seed, o.index)
        notes = [f"{k}: {what}" for k, what in o.verdict.failures]
        if count[key] <= SHRINK_EACH and kind != HANG:
            case = shrink(case, kind)
            notes = [f"{k}: {what}" for k, what in judge(case).failures] or notes
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / f"{kind.replace(' ', '_')}-{o.family}-{o.variant}-{summary.seed}-{o.index}"
        stem.with_suffix(".json").write_text(case.to_json(), encoding="utf-8")
        stem.with_suffix(".py").write_text(snippet(case, notes), encoding="utf-8")
        written.append(stem)
        log(f"written: {stem}.py, .json ({len(case.bodies)} bodies, {len(case.joints)} joints)")
    return written


class Progress:
    """One line on a terminal, updated twice a second; without a terminal, one line every 2000 cases."""

    def __init__(self, total):
        self.total = total
        self.last = 0.0
        self.shown = 0

    def __call__(self, summary):
        done, now = len(summary.outcomes), time.perf_counter()
        terminal = sys.stderr.isatty()
        if (now - self.last < 0.5) if terminal else (done - self.shown < 2000 and done < self.total):
            return
        self.last, self.shown = now, done
        line = f"{done}/{self.total} cases, {summary.seconds:.0f} s, "
        line += f"failed {len(summary.hard)}, unsolved {len(summary.unsolved)}"
        print(f"\r{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, nargs="+", help="indices of single cases")
    parser.add_argument("--out", default=str(Path(__file__).resolve().parent / "found"))
    parser.add_argument("--replay", help="JSON file of a failure to judge again")
    parser.add_argument("--solvable", action="store_true", help="only cases with a known solution, from several starts")
    parser.add_argument("--starts", type=int, default=3, help="starts of each case, with --solvable")
    parser.add_argument("--uniform", action="store_true", help="all starts uniformly random, with --solvable")
    parser.add_argument("--list", help="JSON file of what was not solved, with --solvable")
    parser.add_argument("--extreme", action="store_true", help="extreme scales through every verb, in parts")
    parser.add_argument("--parts", help="folder of the finished parts, with --extreme")
    options = parser.parse_args(arguments)
    if options.replay:
        case = Case.load(options.replay)
        verdict = judge(case, diagnose=True)
        print(f"{case.label}, expected {case.expect}")
        print(f"{verdict.status}, relative error {verdict.miss:.3g}, {verdict.seconds:.3f} s")
        for kind, what in verdict.failures:
            print(f"{kind}: {what}")
        return 1 if verdict.failures else 0
    if options.extreme:
        folder = options.parts or Path(options.out) / "extreme"
        return 0 if extreme.run_parts(options.seed, options.first, options.cases, folder, jobs=options.jobs) else 1
    indices = options.only or range(options.first, options.first + options.cases)
    if options.solvable:
        how = {"uniform": options.uniform, "jobs": options.jobs, "progress": Progress(len(indices))}
        report = run_starts(options.seed, indices, options.starts, **how)
        path = Path(options.list or Path(options.out) / "starts.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        report.write(path)
        print(f"\n{report.text()}\nlisted in {path}")
        return 0 if report.passed else 1
    summary = run(options.seed, indices, jobs=options.jobs, progress=Progress(len(indices)))
    print(f"\n{summary.text()}")
    try:
        write_failures(summary, options.out)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
    return 0 if summary.passed else 1


if __name__ == "__main__":
    sys.exit(main())
