"""Derivatives of outputs with respect to parameters, by the implicit function theorem; tolerances from them.

The equations f(q, v) = 0 determine the poses q as a function of the parameters v:

    ∂q/∂v = −J⁺ ∂f/∂v,      ∂g/∂v = g_v + g_q ∂q/∂v

for an output g(q, v).  Where a freedom is left, J⁺ gives the least change of the poses, in the norm of
:mod:`cardan.coordinates.rates`; an output that the freedom changes is then not unique, and the result says so.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan import joints
from cardan.analysis.batch import assemble_many
from cardan.analysis.batch_result import BatchResult
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.starts import tail_of
from cardan.calls import explains
from cardan.constraints.registry import FeatureKind, Primitive
from cardan.coordinates import formulations, rates, verdict
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint, single_primitive
from cardan.joints.ownership import check_body, chosen_coordinate, coordinate_of
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.drawing import Drawing
from cardan.system.parts import Frame, Point
from cardan.system.relations import Bundle, Relation
from cardan.system.saving import Saved
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_judging = LazyModule("cardan.coordinates._judging")

FOLLOWS = 1e-7  # of ∂f/∂v: a larger rest that no motion removes means that the poses cannot follow a parameter
ROUNDING = 1e-12  # scaled: a smaller rest is rounding, as where both parts of a redundant joint move together
FREE = 1e-9  # scaled: an output that a freedom changes by less does not depend on it
TOLERANCE = 1e-10  # of the assembly of a state


class Output(NamedTuple):
    """A row of an output: its label and its unit."""

    label: str
    unit: str


@explains()
@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity(Saved):
    """Derivatives of outputs with respect to parameters, at a state.

    ``matrix``, shape (outputs, parameters): ∂output/∂parameter.  ``values``, shape (outputs,): of the outputs, in
    metres and radians.  ``outputs``: label and unit of every row.  ``parameters``: names, in the order of the columns.
    ``freedoms``: of the mechanism, with its drivers; where there are some, ``matrix`` belongs to the least change of
    the poses.  ``unique``, shape (outputs,): whether a row is the same for every choice.
    """

    matrix: FloatArray
    values: FloatArray
    outputs: tuple[Output, ...]
    parameters: tuple[str, ...]
    freedoms: int
    unique: NDArray[np.bool_]

    def __getitem__(self, key: tuple[str, str]) -> float:
        """``s["A", "L"]``: the derivative of an output by a parameter."""
        label, parameter = key
        labels = [output.label for output in self.outputs]
        for name, valid, what in ((label, labels, "output"), (parameter, list(self.parameters), "parameter")):
            if name not in valid:
                raise ModelError(f"no {what} is named {name!r}; there are {', '.join(map(repr, valid))}")
        return float(self.matrix[labels.index(label), self.parameters.index(parameter)])

    def text(self) -> str:
        """A table."""
        lines = ["output".ljust(24) + "".join(name.rjust(14) for name in self.parameters)]
        for output, row, unique in zip(self.outputs, self.matrix, self.unique, strict=True):
            mark = "" if unique else "  not unique"
            lines.append(f"{output.label} [{output.unit}]".ljust(24) + "".join(f"{x:14.6g}" for x in row) + mark)
        if self.freedoms:
            left = "1 freedom is" if self.freedoms == 1 else f"{self.freedoms} freedoms are"
            lines.append(f"{left} left: the least change of the poses is taken")
        return "\n".join(lines)


@explains()
@dataclass(frozen=True, slots=True, eq=False)
class Tolerances(Saved):
    """What tolerances ±t of parameters do to outputs, all arrays in metres and radians, shape (outputs,).

    ``worst``: Σ |∂g/∂v| t, the linear bound.  ``rss``: √Σ (∂g/∂v t)².  ``contributions``, shape (outputs, parameters):
    share of each parameter in rss², between 0 and 1.
    ``spread``: the same as rss, from samples: their standard deviation times t/σ of the parameters.  ``mean``: of the
    samples, relative to the output at the state.  ``samples``, shape (samples, outputs): deviations.  ``failed``:
    number of samples that could not be assembled; they are left out.
    """

    sensitivity: Sensitivity
    tolerances: dict[str, float]
    worst: FloatArray
    rss: FloatArray
    contributions: FloatArray
    spread: FloatArray
    mean: FloatArray
    samples: FloatArray
    failed: int
    seconds: float

    def ranked(self, output: str | None = None) -> list[tuple[str, float]]:
        """Parameters and their contributions to an output, the largest first; output: its label, or the only one."""
        labels = [one.label for one in self.sensitivity.outputs]
        if output is None and len(labels) == 1:
            output = labels[0]
        if output not in labels:
            raise ModelError(f"no output is named {output!r}; there are {', '.join(map(repr, labels))}")
        row = self.contributions[labels.index(output)]
        pairs = zip(self.sensitivity.parameters, row.tolist(), strict=True)
        return sorted(pairs, key=lambda pair: -pair[1])

    def text(self) -> str:
        """A table, with contributions ranked."""
        lines = ["output".ljust(24) + "worst case".rjust(14) + "root of sq.".rjust(14) + "Monte Carlo".rjust(14)]
        for k, output in enumerate(self.sensitivity.outputs):
            numbers = (self.worst[k], self.rss[k], self.spread[k])
            lines.append(f"{output.label} [{output.unit}]".ljust(24) + "".join(f"{x:14.4e}" for x in numbers))
            ranked = [f"{name} {share:.1%}" for name, share in self.ranked(output.label) if share > 0.0]
            lines.append(f"  {', '.join(ranked)}")
        count = len(self.samples) + self.failed
        lines.append(f"{count} samples, {self.failed} not assembled, {self.seconds:.2f} s")
        if not self.sensitivity.unique.all():
            lines.append("not unique: a freedom is left; drive or fix it")
        return "\n".join(lines)


def sensitivity(drawing: Drawing, state: State, outputs: Any, parameters: Any, tolerance: float) -> Sensitivity:
    """See :meth:`cardan.Mechanism.sensitivity`."""
    given = drawing.contents.parameters if parameters is None else parameters
    names = [drawing.contents.parameter_name(p) for p in ([given] if isinstance(given, str) else given)]
    if not names:
        way = "give some" if drawing.contents.parameters else "add one with m.parameter(name, value)"
        raise ModelError(f"there are no parameters to differentiate by in mechanism {drawing.contents.name!r}; {way}")
    if not isinstance(state, State):
        raise ModelError(f"sensitivity was given {state!r}; it must be a State, such as result.state")
    drawing.checked_state("sensitivity", state)
    drawing = drawing.at(state)
    return _derivatives(drawing.system, *_outputs(drawing, outputs), state, tuple(dict.fromkeys(names)), tolerance)


def tolerances(
    drawing: Drawing,
    state: State,
    outputs: Any,
    tolerances: Mapping[Any, float],
    samples: int,
    seed: int,
    distribution: str,
    workers: int | None,
) -> Tolerances:
    """See :meth:`cardan.Mechanism.tolerances`."""
    began = clock.perf_counter()
    given = _checked_tolerances(tolerances, drawing.contents.parameter_name)
    check.choice(distribution, "distribution", FACTORS)
    count = check.count(samples, "samples", 2)
    found = sensitivity(drawing, state, outputs, given, TOLERANCE)
    drawn = {**drawing.drawn, **state.variables}
    values = _draw(given, drawn, count, check.count(seed, "seed", 0), distribution)
    batch = assemble_many(drawing, state, None, (), values, AssemblyOptions(restarts=0), workers, None, given)
    _, every = read_poses(drawing, state, outputs, batch, values)
    system, labels = _outputs(drawing.at(state), outputs)
    seen = system.with_variables((), tuple(given))
    every = every[batch.ok]
    failed = int((~batch.ok).sum())
    seconds = clock.perf_counter() - began
    return _combine(found, given, every, _wrapping(seen, len(labels)), failed, distribution, seconds)


def read_poses(
    drawing: Drawing,
    state: State,
    outputs: Any,
    batch: BatchResult | None = None,
    values: Mapping[str, FloatArray] = MappingProxyType({}),
) -> tuple[list[Output], FloatArray]:
    """Labels and units of outputs, and their values in many assemblies, shape (n, rows); NaN where there is none.

    state: where all assemblies began.  values: of parameters in each of them.
    """
    system, labels = _outputs(drawing.at(state), outputs)
    if batch is None:
        return labels, np.empty((0, len(labels)))
    count, seen = len(batch), system.with_variables((), tuple(values)) if values else system
    angles = batch._system.counted_angles
    keys = {key: batch.angles[:, len(batch._system.variable_names) + k] for k, key in enumerate(angles)}
    near = [np.full(count, angle) for angle in _angles_at(seen, state)]
    tail = [keys.get(key, near[k]) for k, key in enumerate(seen.counted_angles)]
    poses = np.column_stack([batch.coordinates.reshape(count, -1), *values.values(), *tail])
    found = np.full((count, len(labels)), np.nan)
    if batch.ok.any():
        found[batch.ok] = _evaluate_many(seen, len(labels), poses[batch.ok], state.time)
    return labels, found


def _outputs(drawing: Drawing, outputs: Any) -> tuple[System, list[Output]]:
    """The system whose relations are the outputs, and a label and a unit for each row."""
    if isinstance(outputs, str | Joint | Coordinate | Point | Frame) or not isinstance(outputs, Iterable):
        outputs = [outputs]
    bundles: list[Bundle] = []
    labels: list[Output] = []
    for k, given in enumerate(outputs):
        what = f"output {k}"
        words, relation = _output(drawing, what, given)
        if not relation.bodies:
            way = ", except with parameters: take its formula, such as (2 * L).value" if relation.nodes else ""
            raise ModelError(f"{what} is on the ground alone; it never changes{way}")
        bundles.append(Bundle(what, [relation]))
        taken = {label.label for label in labels}
        words = [f"{word} ({what})" if word in taken else word for word in words]
        labels += [Output(w, u) for w, u in zip(words, relation.primitive.units, strict=True)]
    if not bundles:
        raise ModelError("there are no outputs; give joints, coordinates, points or primitives")
    counted = dict.fromkeys([angle for b in bundles for r in b.relations for angle in r.counted_angles])
    return System(drawing.records, bundles, list(counted), formulas=drawing.values_now()), labels


def _output(drawing: Drawing, what: str, given: Any) -> tuple[list[str], Relation]:
    """The labels of an output, one for each row, and its relation."""
    if isinstance(given, Point | Frame):
        check_body(drawing.contents, what, given.body)
        words = [f"{given.body.name} {axis}" for axis in "xyz"]
        return words, joints.coincident(drawing.contents.ground.point(), given)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Primitive):
        ends, relation = single_primitive.resolved(given[0], given[1], partial(coordinate_of, drawing.contents))
        for end in ends:
            for body in end.bodies if isinstance(end, Coordinate) else (end.body,):
                check_body(drawing.contents, what, body)
        rows = given[0].rows
        return [given[0].name if rows == 1 else f"{given[0].name} {i}" for i in range(rows)], relation
    chosen = chosen_coordinate(drawing.contents, what, given, None)
    for body in chosen.bodies:
        check_body(drawing.contents, what, body)
    single = chosen.joint and len(drawing.contents.joints[chosen.joint].kind.coordinates) == 1
    words = [chosen.joint if single else f"{chosen.joint} {chosen.name}".strip()]
    return words, Relation(joints.DRIVEN[chosen.kind], chosen.arguments(), (0.0,))


def _derivatives(
    system: System,
    outputs: System,
    labels: Sequence[Output],
    state: State,
    parameters: tuple[str, ...],
    tolerance: float,
) -> Sensitivity:
    """outputs: the system whose relations are the outputs."""
    coordinates = state.coordinates
    free = system.with_variables(parameters)
    near = tail_of(free, state)
    judged, _ = verdict.judge_system(free, coordinates, near, tolerance, state.time)
    if not judged.met:
        raise ModelError(
            f"the state is not assembled: its largest residual is {judged.residual:.1e}, and must be within "
            f"{judged.bound:.1e}; pass the state of m.assemble()"
        )
    bodies = 6 * len(system.names)
    problem = formulations.problem(system, "manifold", None, state.time)
    q = formulations.to_reference(system, coordinates, tail_of(system, state))
    own = formulations.problem(free, "manifold", None, state.time)
    by_parameters = own.jacobian(formulations.to_reference(free, coordinates, near))[1][: problem.rows, bodies:]
    known = rates.linearize(system, problem, q)
    weights = rates.weights(system, problem)
    jacobian = problem.jacobian(q)[1]
    assert free.variable_scales is not None
    sizes = free.variable_scales.at(free.judged_length)
    changes = np.zeros((bodies, len(parameters)))
    for k, name in enumerate(parameters):
        changes[:, k] = known.solve(-by_parameters[:, k])
        rest = np.abs(weights * (jacobian @ changes[:, k] + by_parameters[:, k])).max(initial=0.0)
        if rest > max(FOLLOWS * np.abs(weights * by_parameters[:, k]).max(initial=0.0), ROUNDING / sizes[k]):
            raise ModelError(
                f"no change of the poses follows a change of parameter {name!r}: the constraints would contradict each "
                "other, or the pose is singular; free a redundant joint, or leave this parameter out"
            )
    free_motions = known.free_motions() if known.is_free else np.zeros((0, bodies))
    scales = problem.scales[problem.rows :]
    seen = outputs.with_variables(parameters)
    at = formulations.problem(seen, "manifold", None, state.time)
    values, slopes = at.jacobian(formulations.to_reference(seen, coordinates, tail_of(seen, state)))
    rows = len(labels)
    values, slopes = values[:rows], slopes[:rows]
    moved = _at_references(system, seen, q, changes.T)
    matrix = slopes[:, bodies:] + slopes[:, :bodies] @ moved.T
    drift = slopes[:, :bodies] @ _at_references(system, seen, q, free_motions * scales).T
    size = system.judged_length
    units = np.array([size if output.unit == "m" else 1.0 for output in labels])
    unique = np.abs(drift / units[:, None]).max(axis=1, initial=0.0) <= FREE
    return Sensitivity(matrix, values, tuple(labels), parameters, len(free_motions), unique)


def _at_references(system: System, other: System, q: FloatArray, motions: FloatArray) -> FloatArray:
    """Motions, shape (n, 6 bodies), in the reference points of one system, expressed in those of another."""
    if not len(motions):
        return motions
    poses = q[: layout.POSE * len(system.names)].reshape(-1, layout.POSE)
    found = motions.reshape(len(motions), -1, 6).copy()
    arm = other.reference_points - system.reference_points
    for k in range(len(found)):
        found[k, :, :3] += euler.rotate(poses[:, 3:], np.cross(found[k, :, 3:], arm))
    return found.reshape(len(motions), -1)


def _evaluate_many(outputs: System, rows: int, poses: FloatArray, time: float) -> FloatArray:
    """Outputs in many poses, shape (n, rows); poses: r, p of every body, then variables and counted angles."""
    q = np.ascontiguousarray(poses)
    verdict.shift(outputs, q, 1.0)
    problem = formulations.problem(outputs, "manifold", None, time)
    found = np.empty((len(q), problem.rows))
    work = np.empty(problem.sizes.work)
    _judging.residuals_of_many(
        problem.evaluate, problem.ints, problem.floats, q.reshape(-1), len(q), found.reshape(-1), work
    )
    return found[:, :rows]


def _angles_at(outputs: System, state: State) -> FloatArray:
    """Counted angles of outputs in a state [rad], shape (angles,); one that the state does not have is within ±π."""
    q = formulations.to_reference(outputs, state.coordinates, tail_of(outputs, state))
    q = formulations.with_angles_of_poses(outputs, q)
    return formulations.angles(outputs, q)[len(outputs.variable_names) :]


def _wrapping(outputs: System, rows: int) -> NDArray[np.bool_]:
    """Which rows are angles without counted turns, shape (rows,): their deviations are between −π and π."""
    found = np.zeros(rows, dtype=bool)
    for _, primitive, start in outputs.rows:
        if FeatureKind.ANGLE not in primitive.features:
            for k, unit in enumerate(primitive.units):
                found[start + k] = unit == "rad"
    return found


FACTORS: Mapping[str, float] = {"normal": 3.0, "uniform": math.sqrt(3.0)}  # t/σ of a parameter


def _draw(
    tolerances: Mapping[str, float], values: Mapping[str, float], samples: int, seed: int, distribution: str
) -> dict[str, FloatArray]:
    """Values of parameters: normal with σ = t/3, or uniform within ± t.  Each has its own generator, by its name."""
    found = {}
    for name, t in tolerances.items():
        rng = np.random.default_rng([seed, *name.encode()])
        unit = rng.standard_normal(samples) / 3.0 if distribution == "normal" else rng.uniform(-1.0, 1.0, samples)
        found[name] = values[name] + t * unit
    return found


def _combine(
    found: Sensitivity,
    tolerances: dict[str, float],
    samples: FloatArray,
    wraps: NDArray[np.bool_],
    failed: int,
    distribution: str,
    seconds: float,
) -> Tolerances:
    """The linear figures, and those of the samples."""
    t = np.array([tolerances[name] for name in found.parameters])
    parts = found.matrix * t
    squares = (parts * parts).sum(axis=1)
    shares = np.divide(parts * parts, squares[:, None], out=np.zeros_like(parts), where=squares[:, None] > 0.0)
    apart = samples - found.values
    apart[:, wraps] = np.remainder(apart[:, wraps] + math.pi, 2.0 * math.pi) - math.pi
    spread = FACTORS[distribution] * apart.std(axis=0, ddof=1) if len(apart) > 1 else np.full(len(parts), np.nan)
    mean = apart.mean(axis=0) if len(apart) else np.full(len(parts), np.nan)
    linear = np.abs(parts).sum(axis=1), np.sqrt(squares), shares
    return Tolerances(found, tolerances, *linear, spread, mean, apart, failed, seconds)


def _checked_tolerances(given: Any, named: Any) -> dict[str, float]:
    """Tolerances by name, each above zero."""
    if not isinstance(given, Mapping) or not given:
        raise ModelError(f"the tolerances are {given!r}; they must be {{parameter: tolerance}}")
    return {named(key): check.positive(value, f"the tolerance of {key!r}") for key, value in given.items()}
