"""``cardan papers NAME``: repeat an experiment of the papers, or examine tolerances of a mechanism."""

from __future__ import annotations

import argparse
import contextlib
import csv
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cardan.cli import figures, target
from cardan.cli.output import print_json, table
from cardan.cli.progress import Bar
from cardan.examples import REGISTRY
from cardan.solvers.methods import SPRING_GAIN
from cardan.system import check
from papers import bench, hand, liu2013, minima, pictures, table2, tolerances
from papers.liu2013 import INVERSES, Settings
from papers.table2 import FORMULAS, MARKS, Row, Table2

TRACES = 100  # convergent runs drawn per formula
TITLES = ("experiment", "starts", "formula", "converged", "iterations", "paper", "iterations", "σ", "restarts", "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    experiments = parser.add_subparsers(title="experiments", metavar="NAME", required=True)
    _add_liu2013(experiments)
    _add_minima(experiments)
    _add_tolerances(experiments)
    _add_differences(experiments)
    _add_contact(experiments)
    _add_hand(experiments)
    bench.add_to(experiments)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options of every experiment."""
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random starts; default: %(default)s")
    parser.add_argument("--workers", type=int, metavar="N", help="threads; default: one for each core")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--csv", metavar="FILE", help="write the rows of the table to a file")
    parser.add_argument("--plot", metavar="FILE", help="draw a picture (.png, .svg, .pdf)")


def _add_liu2013(experiments: Any) -> None:
    text = "convergence of Newton's iteration by Jacobian formula: Table 2 of Liu, Song and Yong (2013)"
    parser = experiments.add_parser("liu2013", help=text, description=text, allow_abbrev=False)
    add_common(parser)
    parser.add_argument(
        "--example", type=int, action="append", metavar="K", help="1 to 4, may be repeated; default: all of them"
    )
    parser.add_argument("--samples", type=int, default=table2.SAMPLES, metavar="N", help="starts; default: %(default)s")
    parser.add_argument(
        "--region", choices=table2.REGIONS, action="append", help="where starts are drawn from; default: all"
    )
    parser.add_argument(
        "--box",
        choices=table2.BOXES,
        default="reproducing",
        help="of Example 1: [0, 1]⁴, which reproduces the figures, or [−1, 1]⁴ as printed; default: %(default)s",
    )
    parser.add_argument("-N", type=int, default=liu2013.N, help="iterations of Algorithm 1; default: %(default)s")
    parser.add_argument(
        "--epsilon", type=float, default=liu2013.EPSILON, metavar="X", help="on ‖Φ‖; default: %(default)s"
    )
    parser.add_argument(
        "--inverse",
        choices=list(INVERSES),
        default="lu",
        help="lu: J⁻¹, and J⁺ where J is singular; pseudo: J⁺ in every step; default: %(default)s",
    )
    parser.set_defaults(experiment=_run_liu2013)


def _run_liu2013(args: argparse.Namespace) -> int:
    examples: list[int] = list(dict.fromkeys(args.example or [1, 2, 3, 4]))
    regions: list[Any] = list(dict.fromkeys(args.region or table2.REGIONS))
    settings = Settings(args.N, args.epsilon, args.inverse)
    table2.check_inputs(args.samples, args.seed, regions, args.box, examples)
    picture = None if args.plot is None else figures.check_picture(args.plot)
    rows = None if args.csv is None else figures.check_file(args.csv)
    figures.check_apart(picture, rows)
    kept: list[Row] = []
    began = time.perf_counter()
    with Bar("liu2013") as bar, _keeping(kept) as ending:
        table2.table_2(
            samples=args.samples,
            seed=args.seed,
            examples=examples,
            regions=regions,
            box=args.box,
            settings=settings,
            workers=args.workers,
            progress=bar.update,
            rows=kept,
        )
    found = Table2(tuple(kept), settings, args.samples, args.seed, args.box, time.perf_counter() - began)
    try:
        _print_liu2013(found, args.json)
    finally:  # a run takes long: if one output fails, the others are still written
        if rows is not None:
            _write_csv([row.as_dict() for row in found.rows], rows)
        if picture is not None:
            figures.save(pictures.convergence(found, _traces(found), FORMULAS), picture)
    return ending.code()


class _Ending:
    """How an experiment ended."""

    is_interrupted = False

    def code(self) -> int:
        """0, or KeyboardInterrupt after the rows that were found are printed."""
        if self.is_interrupted:
            raise KeyboardInterrupt
        return 0


@contextlib.contextmanager
def _keeping(rows: Sequence[Any]) -> Iterator[_Ending]:
    """A context that an interruption leaves quietly if rows were found: they are printed before it ends."""
    ending = _Ending()
    try:
        yield ending
    except KeyboardInterrupt:
        if not rows:
            raise
        ending.is_interrupted = True


def _print_liu2013(found: Table2, as_json: bool) -> None:
    if as_json:
        worked = liu2013.worked_iteration()
        shown = {"q_0": worked.q_0, "matrix_22": worked.jacobian, "q_1": worked.q_1, "A_1": worked.matrix_1}
        document = {**found.as_dict(), "worked_iteration": {key: value.tolist() for key, value in shown.items()}}
        print_json(document)
    else:
        print(_text(found))
    sys.stdout.flush()


def _text(found: Table2) -> str:
    settings = found.settings
    used = "".join(sorted({mark for row in found.rows for mark in row.marks}))
    general = "chi" if settings.iterations == liu2013.N else "ch"
    worked = any(row.experiment.example == 1 for row in found.rows)
    marks = sorted({*used, *general, *("b" if worked else "")})
    lines = [
        f"{found.samples:,} starts each, seed {found.seed}, N = {settings.iterations}, ε = {settings.epsilon:g}, "
        f"inverse {settings.inverse}; {found.seconds:.1f} s",
        "",
        table(TITLES, map(_cells, found.rows), left=3),
        "",
        "paper: Table 2 of [Liu2013], of 10,000; σ: difference of the shares, in its standard deviations",
        "restarts: total of auto; they depend on the seed only, so one good draw helps every start",
        *(f"{mark}  {MARKS[mark]}" for mark in marks),
    ]
    named = [f"{row.experiment.name} {row.region} {FORMULAS[row.formula]}" for row in found.rows if "g" in row.marks]
    if named:
        lines += ["", "not reproduced: " + "; ".join(named)]
    if worked:
        lines += ["", "worked iteration of Example 1, body 1 movable, Peng's formula:"]
        lines.append(liu2013.worked_iteration().text())
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    count, mean = row.paper or (None, None)
    low = "[0, 1]⁴" if "e" in row.marks and row.low == 0.0 else "[−1, 1]⁴"
    return (
        row.experiment.name,
        low if row.region == "box" else row.region,
        FORMULAS[row.formula],
        f"{row.converged:,}",
        "–" if math.isnan(row.mean_iterations) else f"{row.mean_iterations:.2f}",
        "" if count is None else f"{count:,}",
        "" if mean is None else f"{mean:.2f}",
        "" if row.deviation is None else f"{row.deviation:+z.1f}",
        f"{row.restarts:,}" if row.formula == "auto" else "",
        row.marks,
    )


def _traces(found: Table2) -> dict[tuple[str, str], dict[str, list[Any]]]:
    """‖Φ‖ by iteration of some convergent runs, by experiment and region, and formula."""
    traces: dict[tuple[str, str], dict[str, list[Any]]] = {}
    formula: Any
    for row in found.rows:
        if row.formula in ("auto", table2.PRINTED_22):
            continue
        formula = row.formula
        number = table2.EXPERIMENTS.index(row.experiment)
        starts = table2.starts(row.region, row.low, found.samples, found.seed, number)[: 4 * TRACES]
        runs = []
        for p in starts:
            norms = liu2013.trace(row.experiment.example, row.experiment.movable, formula, p, found.settings)[1]
            if norms[-1] <= found.settings.epsilon and len(norms) <= found.settings.iterations:
                runs.append(norms)
            if len(runs) == TRACES:
                break
        traces.setdefault((row.experiment.name, row.region), {})[row.formula] = runs
    return traces


def _write_csv(rows: Sequence[dict[str, Any]], path: Path) -> None:
    with figures.writing(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _add_minima(experiments: Any) -> None:
    text = "local minima of assembly by the spring step: quaternions against ZXZ angles, after Nelson and Cohen"
    parser = experiments.add_parser("minima", help=text, description=text, allow_abbrev=False)
    add_common(parser)
    parser.add_argument(
        "--mechanism",
        action="append",
        metavar="MODEL",
        help=f"a model, may be repeated; default: {', '.join(minima.MECHANISMS)}",
    )
    parser.add_argument("--starts", type=int, default=minima.STARTS, metavar="N", help="default: %(default)s")
    parser.add_argument("--iterations", type=int, default=minima.ITERATIONS, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=minima.TOLERANCE,
        metavar="X",
        help="of lengths relative to the extent, of angles in radians; default: %(default)s",
    )
    parser.add_argument(
        "--gain",
        type=float,
        default=SPRING_GAIN,
        metavar="K",
        help="k of the spring step, at most the stability bound; inf: this bound; default: %(default)s",
    )
    parser.set_defaults(experiment=_run_minima)


def _run_minima(args: argparse.Namespace) -> int:
    names = tuple(dict.fromkeys(args.mechanism or minima.MECHANISMS))
    models = {name: target.find(name).mechanism for name in names if name not in REGISTRY}
    inputs = minima.Inputs(names, args.starts, args.iterations, args.tolerance, args.seed, args.gain, models)
    picture = None if args.plot is None else figures.check_picture(args.plot)
    rows = None if args.csv is None else figures.check_file(args.csv)
    figures.check_apart(picture, rows)
    found: list[minima.Descent] = []
    with Bar("minima") as bar, _keeping(found) as ending:
        minima.minima(inputs, workers=args.workers, progress=bar.update, rows=found)
    try:
        _print_minima(found, inputs, args.json)
    finally:
        if rows is not None:
            _write_csv([row.as_dict() for row in found], rows)
        if picture is not None:
            figures.save(pictures.sequence(minima.sequence(inputs)), picture)
    return ending.code()


def _print_minima(found: Sequence[minima.Descent], inputs: minima.Inputs, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "starts": inputs.starts,
                "iterations": inputs.iterations,
                "tolerance": inputs.tolerance,
                "seed": inputs.seed,
                "gain": inputs.gain if math.isfinite(inputs.gain) else None,  # null: the stability bound
                "rows": [row.as_dict() for row in found],
            }
        )
        sys.stdout.flush()
        return
    titles = ("mechanism", "unknowns", "met", "unmet", "minimum", "chart", "slow", "iterations", "slope left")
    rows = [
        (
            row.mechanism,
            minima.CHARTS[row.chart],
            str(row.met),
            f"{100.0 * (row.starts - row.met) / row.starts:.0f} %",
            str(row.minimum),
            str(row.by_chart),
            str(row.slow),
            "–" if row.median_iterations is None else f"{row.median_iterations:,.0f}",
            "" if row.median_left is None else f"{100.0 * row.median_left:.0f} %",
        )
        for row in found
    ]
    gain = f"k = {inputs.gain:g}, clipped to" if math.isfinite(inputs.gain) else "k at half"
    print(
        f"spring step (15) with {gain} the bound of stability; {inputs.starts} starts each, seed "
        f"{inputs.seed}, up to {inputs.iterations:,} iterations, tolerance {inputs.tolerance:g}\n"
    )
    print(table(titles, rows, left=2))
    print(
        "\nA run that is not met continues for the same number of iterations, in its unknowns and on the manifold:\n"
        "minimum  neither is met, and the gradient on the manifold is zero: no choice of unknowns helps\n"
        f"chart    met on the manifold; not in its unknowns, or in over {minima.SLOWED:g} times the iterations\n"
        "slow     all others: still converging\n"
        "iterations: until the tolerance was met, median of these runs\n"
        "slope left: of the gradient on the manifold, in the unknowns of the runs counted under chart, median",
        flush=True,
    )


def _add_tolerances(experiments: Any) -> None:
    text = "tolerances of a mechanism over a turn: worst case, root of squares, and a Monte Carlo"
    parser = experiments.add_parser("tolerances", help=text, description=text, allow_abbrev=False)
    add_common(parser)
    offered = ", ".join(tolerances.SUBJECTS)
    parser.add_argument("mechanism", metavar="NAME", help=f"one of {offered}")
    parser.add_argument("--poses", type=int, default=tolerances.POSES, metavar="N", help="default: %(default)s")
    parser.add_argument("--samples", type=int, default=tolerances.SAMPLES, metavar="N", help="default: %(default)s")
    parser.set_defaults(experiment=_run_tolerances)


def _run_tolerances(args: argparse.Namespace) -> int:
    picture = None if args.plot is None else figures.check_picture(args.plot)
    rows = None if args.csv is None else figures.check_file(args.csv)
    figures.check_apart(picture, rows)
    with Bar("tolerances") as bar:
        found = tolerances.study(
            args.mechanism,
            poses=args.poses,
            samples=args.samples,
            seed=args.seed,
            workers=args.workers,
            progress=bar.update,
        )
    try:
        _print_tolerances(found, args.json)
    finally:
        if rows is not None:
            _write_csv(found.rows(), rows)
        if picture is not None:
            figures.save(tolerances.picture(found), picture)
    return 0


def _print_tolerances(found: tolerances.Study, as_json: bool) -> None:
    if as_json:
        document = {"mechanism": found.name, "output": found.output, "unit": found.unit, "samples": found.samples}
        print_json({**document, "seed": found.seed, "contributions": found.contributions(), "rows": found.rows()})
    else:
        unit = "mm" if found.unit == "m" else "mrad"
        titles = (
            "crank",
            f"{found.output} [{found.unit}]",
            f"worst ± {unit}",
            "root of squares",
            "Monte Carlo",
            "failed",
        )
        cells = [
            (
                f"{math.degrees(row['angle']):.1f}°",
                f"{row['value']:.6f}",
                *(f"{1e3 * row[key]:.4f}" for key in ("worst", "rss", "monte_carlo")),
                str(row["failed"]),
            )
            for row in found.rows()
        ]
        ranked = ", ".join(f"{name} {100.0 * share:.1f} %" for name, share in found.contributions().items())
        print(f"{found.name}: {found.samples:,} samples in each pose, seed {found.seed}\n")
        print(table(titles, cells, left=1))
        print(f"\ncontributions to the variance, mean over the poses: {ranked}")
    sys.stdout.flush()


def _add_differences(experiments: Any) -> None:
    text = "derivatives of a closest pair by differences against the exact ones, after Nelson and Cohen"
    parser = experiments.add_parser("differences", help=text, description=text, allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the two surfaces; default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--csv", metavar="FILE", help="write the rows of the table to a file")
    parser.set_defaults(experiment=_run_differences)


def _run_differences(args: argparse.Namespace) -> int:
    from papers import differences

    check.count(args.seed, "the seed", 0)
    path = None if args.csv is None else figures.check_file(args.csv)
    rows = differences.study(args.seed)
    if args.json:
        print_json({"rows": [row.as_dict() for row in rows]})
    else:
        cells = [(r.scheme, r.chart, f"{r.h:.0e}", f"{r.error:.1e}", f"{r.microseconds:.0f}") for r in rows]
        print(table(("scheme", "chart", "h", "error", "µs"), cells, left=2))
    if path is not None:
        _write_csv([row.as_dict() for row in rows], path)
    return 0


def _add_contact(experiments: Any) -> None:
    text = "the papers' contact equations next to the library's: convergence, error of the derivatives, cost"
    parser = experiments.add_parser("contact", help=text, description=text, allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=12, metavar="N", help="of the papers' iteration; default: 12")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--plot", metavar="FILE", help="draw a picture (.png, .svg, .pdf)")
    parser.set_defaults(experiment=_run_contact)


def _run_contact(args: argparse.Namespace) -> int:
    from papers import contact

    check.count(args.steps, "--steps", 1, 100)
    picture = None if args.plot is None else figures.check_picture(args.plot)
    found = contact.study(args.steps)
    if args.json:
        print_json(found.as_dict())
    else:
        count = max(len(found.papers), len(found.ours))
        gaps = [[f"{gap:.2e}" for gap in one] + [""] * (count - len(one)) for one in (found.papers, found.ours)]
        cells = [(str(k), *row) for k, row in enumerate(zip(*gaps, strict=True))]
        print("gap [m] of two ellipses on hinges, by Newton's method")
        print(table(("iteration", "C^p of the papers", "gap of the library"), cells))
        print(f"\nf and J: {found.papers_microseconds:.0f} µs and {found.ours_microseconds:.1f} µs")
        errors = ", ".join(f"{scheme} {error:.1e}" for scheme, error in found.errors.items())
        print(f"gradient of the gap by differences, relative error: {errors}")
        print(f"|C^tan| at the closest points: {found.tangency:.0e}")
    if picture is not None:
        figures.save(contact.picture(found), picture)
    return 0


def _add_hand(experiments: Any) -> None:
    text = "the operator's hand as a constraint, as a spring, and the dense method: stability, force, cost"
    parser = experiments.add_parser("hand", help=text, description=text, allow_abbrev=False)
    parser.add_argument("--rate", type=float, action="append", metavar="HZ", help="may be repeated")
    parser.add_argument("--bodies", type=int, action="append", metavar="N", help="may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--plot", metavar="FILE", help="draw a picture (.png, .svg, .pdf)")
    parser.set_defaults(experiment=_run_hand)


def _run_hand(args: argparse.Namespace) -> int:
    picture = None if args.plot is None else figures.check_picture(args.plot)
    rates = [check.positive(rate, "--rate") for rate in args.rate or hand.RATES]
    sizes = [check.count(size, "--bodies", 1, 2000) for size in args.bodies or hand.BODIES]
    with Bar("hand") as bar:
        stability: list[hand.Stability] = []
        for rate in rates:
            bar.update(len(stability), len(rates) + len(sizes))
            stability.append(hand.measure_stability(rate))
        costs: list[hand.Cost] = []
        for size in sizes:
            bar.update(len(rates) + len(costs), len(rates) + len(sizes))
            costs.append(hand.measure_cost(size))
    if args.json:
        print_json(hand.as_document(stability, costs))
    else:
        print(_hand_text(stability, costs))
    if picture is not None:
        figures.save(hand.picture(stability, costs), picture)
    return 0


def _hand_text(stability: Sequence[hand.Stability], costs: Sequence[hand.Cost]) -> str:
    first = [
        (
            f"{s.rate:g}",
            *(f"{value:.3g}" for value in (s.explicit, hand.explicit_limit(s.rate), s.implicit)),
            *(f"{value:.0e}" for value in (s.constraint_error, s.spring_error)),
        )
        for s in stability
    ]
    second = [
        (f"{c.bodies}", *(f"{1e6 * value:.1f}" for value in (c.kinematic, c.constraint, c.spring, c.dense)))
        for c in costs
    ]
    return "\n".join(
        [
            "largest stable stiffness [N/m] of a hand on a damped mass, and relative error of its force at rest",
            table(("rate [Hz]", "explicit", "closed form", "implicit", "constraint", "spring"), first),
            "",
            "one cycle of a chain [µs]",
            table(("bodies", "kinematic", "constraint", "spring", "dense"), second),
        ]
    )
