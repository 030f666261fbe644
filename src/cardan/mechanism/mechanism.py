"""The analyses of a mechanism, and saving it.  Each method is a thin call into the layers below."""

from __future__ import annotations

import copy as copying
import time as clock
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from cardan import joints
from cardan.analysis.motion import Motion
from cardan.analysis.result import AssemblyResult
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import Line
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint, own
from cardan.lazy import LazyModule
from cardan.mechanism.drawing import HERE
from cardan.mechanism.dynamics import Dynamics
from cardan.system import check
from cardan.system.formulas import Parameter
from cardan.system.parts import Body, Frame, Point
from cardan.system.relations import Bundle, Relation
from cardan.system.state import State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.batch_result import BatchResult
    from cardan.analysis.chunks import Progress
    from cardan.analysis.equilibrium import Equilibrium
    from cardan.analysis.linearise import ConstraintEquations
    from cardan.analysis.options import AssemblyOptions, OptionArguments
    from cardan.analysis.sensitivity import Sensitivity, Tolerances
    from cardan.analysis.simulation import Simulation
    from cardan.analysis.vibration import Linearization
    from cardan.coordinates.formulations import Formulation
    from cardan.diagnosis.freedom import Diagnosis
    from cardan.dynamics.equations import Equations
    from cardan.interact.session import Session

# Loaded on first use, so that building a model does not wait for them.
_assemble = LazyModule("cardan.analysis.assemble")
_batch = LazyModule("cardan.analysis.batch")
_equilibrium = LazyModule("cardan.analysis.equilibrium")
_files = LazyModule("cardan.files.writer")  # of a layer above, which m.save calls
_freedom = LazyModule("cardan.diagnosis.freedom")
_linearise = LazyModule("cardan.analysis.linearise")
_move = LazyModule("cardan.analysis.move")
_options = LazyModule("cardan.analysis.options")
_sensitivity = LazyModule("cardan.analysis.sensitivity")
_session = LazyModule("cardan.interact.session")
_simulate = LazyModule("cardan.analysis.simulate")
_solve_rates = LazyModule("cardan.analysis.solve_rates")
_vibration = LazyModule("cardan.analysis.vibration")


class Mechanism(Dynamics):
    """Bodies, the joints between them, and the loads on them.  All share one set of names.

    Add bodies with :meth:`body`, joints with :meth:`revolute`, :meth:`spherical`, …, loads with :meth:`spring`,
    :meth:`force`, …, then :meth:`assemble`, :meth:`move`, :meth:`simulate` or :meth:`diagnose`.  Only dynamics uses
    ``gravity`` [m/s²] and loads.  ``poses`` are states to be saved with it: ``m.poses["open"] = result.state``.
    """

    def assemble(
        self,
        start: State | Mapping[Any, Any] | None = None,
        *,
        time: float | None = None,
        free: Iterable[str | Parameter] = (),
        least: Any = None,
        workers: int | None = None,
        options: AssemblyOptions | None = None,
        **changes: Unpack[OptionArguments],
    ) -> AssemblyResult:
        """Find poses that satisfy every joint, from the authored poses or from ``start``.

        start: a State, or ``{body: (position, quaternion)}`` for some bodies.
        time [s]: of the drivers; that of the start, or 0, where none is given.
        free: parameters to solve for too, within their bounds; their values are in ``result.state.variables``.
        least: where many values fit: ``"nearest"`` to the drawn values, or a formula of parameters to be minimised,
        such as ``L1 + L2``.  Without it some values near the drawn ones are found.
        options: a :class:`cardan.AssemblyOptions`.  Its fields may also be given one by one: ``method``,
        ``formulation``, ``tolerance``, ``max_iterations``, ``max_seconds``, ``restarts``, ``seed``, ``spring``.
        workers: threads that share each spring step of the methods ``"gradient"`` and ``"hybrid"``; 1 if it is not
        given.  The result does not depend on it, to the last bit.
        """
        own = _checked_options(options, changes)
        if start is not None:
            self._check_start("assemble", start)
        where = self._at(start) if self._parameters else HERE
        if where is HERE and not free and least is None:
            plain_result: AssemblyResult = _assemble.assemble(self.system, start, time, own, workers)
            return plain_result
        with where:
            system = self._with_free(free)
            if least is None:
                result: AssemblyResult = _assemble.assemble(system, start, time, own, workers)
            elif workers is not None:
                raise ModelError(f"workers is {workers}, but an assembly with least= uses one thread; omit one of them")
            elif system.variables.free:
                result = _assemble.assemble_least(system, start, time, own, least)
            else:
                raise ModelError(f"least is {least!r}, but no parameter is free; give free=[…]")
        return result

    def assemble_many(
        self,
        starts: Any,
        *,
        time: float | None = None,
        free: Iterable[str | Parameter] = (),
        values: Mapping[Any, Any] | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
        options: AssemblyOptions | None = None,
        **changes: Unpack[OptionArguments],
    ) -> BatchResult:
        """Assemble from many starts: what :meth:`assemble` would answer to each, as arrays.

        starts: r [m] and p of every body, shape (n, bodies, 7), or a list of what :meth:`assemble` takes.
        free: parameters to solve for too, as in :meth:`assemble`.
        values: of parameters by name, shape (n,) each, one for each start; then ``starts`` may be one state for all.
        Without it the values are those of each state.
        workers: threads; None for one per core, 1 for the calling thread alone.  The answers do not depend on it.
        progress: called now and then with the number of starts done, and of all starts.
        options: as of :meth:`assemble`; ``max_seconds`` is for all starts together.
        """
        own = _checked_options(options, changes)
        return self._assemble_many(starts, time, free, values, workers, progress, own)

    def _assemble_many(
        self,
        starts: Any,
        time: float | None,
        free: Iterable[str | Parameter],
        values: Mapping[Any, Any] | None,
        workers: int | None,
        progress: Progress | None,
        own: AssemblyOptions,
        tolerances: Mapping[str, float] = MappingProxyType({}),
    ) -> BatchResult:
        """tolerances: by which the values were drawn; samples may be beyond the bounds of their parameters."""
        names = self._with_free(free).variables.free
        starts, given = _batch.starts_with_values(starts, values, self._drawn, self._parameter_name)
        both = [name for name in given if name in names]
        if both and values is not None:
            raise ModelError(f"parameter {both[0]!r} is free and in values; a free parameter starts from its state")
        self._check_values(given, tolerances)
        held = tuple([name for name in given if name not in names])
        system = self.system.with_variables(names, held) if names or held else self.system
        results: BatchResult = _batch.assemble_many(system, starts, time, own, workers, progress, given)
        return results

    def move(
        self,
        times: Iterable[float],
        start: State | Mapping[Any, Any] | None = None,
        *,
        tolerance: float = 1e-12,
        max_seconds: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Motion:
        """Positions, velocities and accelerations at times [s] of a driven motion, on one branch.

        The mechanism is assembled at the first time, from ``start``, and followed from there: steps are as small as
        the motion needs, the branch is kept, and at a dead point or a limit the motion ends and says so.
        times: increasing, or decreasing.  max_seconds: for the whole call.  progress: called with the part done.
        Interrupted by the keyboard, it returns what was reached.
        """
        self._check_start("move", start)
        with self._at(start):
            motion: Motion = _move.move(
                self.system, times, start, tolerance=tolerance, max_seconds=max_seconds, progress=progress
            )
            motion._model = self._model()
        motion._source = self, self._edits
        return motion

    def simulate(
        self,
        duration: float,
        state: State | Mapping[Any, Any] | None = None,
        *,
        step: float | None = None,
        rtol: float | None = None,
        times: Iterable[float] | None = None,
        method: str = "adams",
        max_step: float | None = None,
        max_seconds: float | None = None,
        progress: Callable[[float], None] | None = None,
        stabilization: str = "projection",
        gain: float | None = None,
        tolerance: float = 1e-12,
    ) -> Simulation:
        """The motion under gravity and loads over a duration [s], from a state with its velocities, or from rest.

        step [s]: constant steps.  rtol: variable steps, chosen so that the estimated error of each is below rtol,
        relative to the extent, or in radians.  If neither is given, rtol is 1e-6.
        times [s]: of the outputs.  If none are given, every constant step, or 100 intervals.
        method: "adams"; "rk4" and "dopri5" for comparison; "generalized_alpha", an implicit method of order 2 for stiff
        springs and dampers, which is computed in Python and slower.
        max_step [s]: of steps chosen by rtol.  Where it is not given, a hundredth of the duration, or a tenth without
        loads, drivers and limits.  A pulse of a load that is shorter may be stepped over.
        max_seconds: for the whole call.  progress: called with the part done, between 0 and 1.
        stabilization: "projection" keeps joints closed in every step.  "none" and "baumgarte" are for comparison: the
        joints are equations of accelerations alone, and open slowly; with Baumgarte's terms they open less.
        gain [1/s]: α of Baumgarte's terms 2α (J v − ġ) + α² f; 0.1/step where it is not given.
        tolerance: of the assembly at the start, as in :meth:`assemble`.
        If it is interrupted by the keyboard, the result contains what was reached.
        """
        given = (step, rtol, times, method, max_step, max_seconds, progress, stabilization, gain, tolerance)
        options = _simulate.Options(*given)
        self._check_start("simulate", state)
        with self._at(state):
            equations, notes = self._equations()
            simulation: Simulation = _simulate.simulate(self.system, equations, duration, state, options, notes)
            simulation._connections = self._connections()
        simulation._source = self, self._edits
        return simulation

    def equilibrium(
        self, state: State | Mapping[Any, Any] | None = None, *, max_iterations: int = 200, tolerance: float = 1e-12
    ) -> Equilibrium:
        """A pose near a state, or the drawing, where the mechanism rests under gravity and loads.

        The search follows the forces, so that it ends at a stable equilibrium, except if it starts at an unstable one;
        ``stable`` tells.  Limits hold.  Drivers keep the values of the time of the state.  Dampers and friction have no
        force at rest.  Reactions and efforts: ``eq.reaction("A")``, ``eq.effort("motor")``.
        tolerance: of the assembly at the start, as in :meth:`assemble`.
        """
        self._check_start("equilibrium", state)
        with self._at(state):
            equations, notes = self._equations()
            rough = [repr(load.name) for load in self._loads.values() if dict(load.parameters).get("coulomb")]
            if rough:
                notes.append(f"friction {', '.join(rough)} has no force at rest: it holds no parts in equilibrium")
            given = (self.system, equations, state, notes, self._connections(), max_iterations, tolerance)
            found: Equilibrium = _equilibrium.find_equilibrium(*given)
        if found._instant is not None:
            found._instant._source = self, self._edits
        return found

    def linearize(self, state: State | Mapping[Any, Any] | None = None, *, tolerance: float = 1e-12) -> Linearization:
        """Small motions about an equilibrium: frequencies [Hz], damping ratios, modes, and the matrix A of ż = A z.

        state: at rest, in equilibrium, such as ``m.equilibrium().state``.  Drivers keep the values of its time.
        tolerance: of the assembly of the state, as in :meth:`assemble`.
        """
        self._check_start("linearize", state)
        with self._at(state):
            found: Linearization = _vibration.linearize(self.system, self._equations()[0], state, tolerance)
        return found

    def solve_rates(self, state: State, given: Mapping[Any, float] | None = None) -> State:
        """The state with velocities that satisfy every joint and driver, and given rates of coordinates.

        given: rates [rad/s] or [m/s] by joint (its name, if it has one coordinate) or coordinate: ``{"A": 2.0,
        "pin.angle": 1.0}``.
        What they leave free has the least kinetic energy.  Raises ModelError, with names, if rates contradict each
        other.
        """
        if not isinstance(state, State):
            raise ModelError(f"solve_rates got {state!r}; it must be a State, such as result.state")
        if given is not None and not isinstance(given, Mapping):
            raise ModelError(f"solve_rates got the rates {given!r}; they must be by joint, such as {{'A': 2.0}}")
        with self._at(state):
            return self._solve_rates(state, given or {})

    def _solve_rates(self, state: State, given: Mapping[Any, float]) -> State:
        chosen = []
        for key in given:
            one = self._chosen("solve_rates", self._by_key(key) if isinstance(key, str) else key, None)
            self._check_own("solve_rates", one)
            chosen.append(one)
        driven, theirs = copying.deepcopy((self, chosen))
        for one, copied, rate in zip(chosen, theirs, given.values(), strict=True):
            name = f"rate of {one.joint or one.name}"
            is_one_of = bool(one.joint) and len(self[one.joint].kind.coordinates) > 1
            name += f".{one.name}" if is_one_of or name in driven else ""
            while name in driven:
                name += "'"
            line = Line(one.value(state), check.number(rate, name), state.time)
            driven._add(joints.drive, name, (driven[one.joint].of(one.name) if one.joint else copied, line), {})
        sampled = any([relation.is_sampled for joint in self._joints.values() for relation in joint.relations])
        equations, _ = driven._new_equations(follow=False) if sampled else driven._equations()
        found: State = _solve_rates.solve_rates(self.system, equations, state)
        return found

    def session(
        self,
        state: State | Mapping[Any, Any] | None = None,
        *,
        mode: str = "kinematic",
        rate: float = 1000.0,
        hand: str = "constraint",
        time: float | None = None,
        closed: bool = True,
        formulation: Formulation = "manifold",
        tolerance: float = 1e-12,
    ) -> Session:
        """An operator in the loop: grasp bodies, move targets, and read the force on the hand, cycle by cycle.

        state: where it begins; it is assembled, and the drawing where none is given.
        closed: False begins with open joints; the first cycles close them, one solver step each.  Then add hands.
        formulation, tolerance: of this assembly, as of :meth:`assemble`.  time: of the drivers, that of the state where
        none is given.
        mode: "kinematic": the joints are rigid and the hands compliant; no time passes, so masses, gravity and loads do
        not act, and drivers keep the values that they have at the time of the state.  "dynamic": the equations of
        motion, with gravity, loads and drivers.
        rate [Hz]: of the cycles; a cycle of a dynamic session lasts 1/rate.
        hand: "constraint" or "spring", what grasps are in a dynamic session; see :meth:`Session.grasp`.
        """
        self._check_start("session", state)
        with self._at(state):
            model = self.copy()
            owner = self if closed else model  # later changes of this mechanism do not matter to the session

            def equations() -> Equations:
                with owner._at(state):
                    return owner._equations()[0] if mode == "dynamic" else owner._metric_equations()

            made: Session = _session.Session(
                _session.Source(self.system, equations, self, model._probe),
                state,
                mode=mode,
                rate=rate,
                hand=hand,
                time=time,
                closed=closed,
                formulation=formulation,
                tolerance=tolerance,
            )
        return made

    def diagnose(
        self, state: State | None = None, *, tolerance: float = 1e-12, free: Iterable[str | Parameter] = ()
    ) -> Diagnosis:
        """Degrees of freedom, redundancy and residuals in a state (the authored one where none is given).

        tolerance: as in :meth:`assemble`; the state counts as assembled where every residual is within it, and
        motions along which every residual stays within it count as free.
        free: parameters that are unknowns too; one that nothing determines is reported as a freedom, by name.
        """
        if state is None:
            state = self.system.state()
        elif not isinstance(state, State):
            raise ModelError(f"diagnose was given {state!r}; it must be a State, such as result.state")
        with self._at(state):
            found: Diagnosis = _freedom.diagnose(self._with_free(free), state, tolerance)
        return found

    def constraint_equations(
        self, state: State | None = None, joint: str | Joint | None = None, *, sparse: bool | None = None
    ) -> ConstraintEquations:
        """Value, Jacobian and γ of all constraints in a state (the authored one where none is given), or of one joint.

        Rows are in the order of m.joints; columns are (δr in world, δθ in body axes) of each body, in the order of
        m.bodies.  sparse: of the Jacobian; None: if it is large.  See :class:`cardan.ConstraintEquations`.
        """
        own = self._checked_state("constraint_equations", state)
        self._check_own("constraint_equations", joint)
        with self._at(own):
            found: ConstraintEquations = _linearise.constraint_equations(self.system, own, joint, sparse)
        return found

    def jacobian(
        self,
        of: Point | Frame | Body,
        state: State | None = None,
        *,
        by: str | Joint | Iterable[str | Joint] = "bodies",
        sparse: bool | None = None,
    ) -> Any:
        """Derivative of the position of a point [m] in world, shape (3, n), or of a frame or body, shape (6, n).

        The last three rows of a frame are its rotation [rad] in world axes.
        by: "bodies": n = 6·bodies, (δr in world, δθ in body axes) of each body, in the order of m.bodies, whatever the
        joints; or "drivers", or the names of some drivers: one column for each, [per rad or per m], along the motion
        that the joints allow, with the other drivers at rest.
        """
        own = self._checked_state("jacobian", state)
        place = of if isinstance(of, Body) else getattr(of, "body", None)
        if place is not None:
            self._check_body("jacobian", place)
        by = by if isinstance(by, str | Joint) or not isinstance(by, Iterable) else list(by)
        for driver in by if isinstance(by, list) else [by]:
            self._check_own("jacobian", driver)
        with self._at(own):
            return _linearise.jacobian(self.system, of, own, by, sparse)

    def sensitivity(
        self,
        state: State,
        outputs: Any,
        parameters: Iterable[str | Parameter] | None = None,
        *,
        tolerance: float = 1e-10,
    ) -> Sensitivity:
        """Exact derivatives of outputs with respect to parameters, in an assembled state.

        outputs: a list of joints (by name, if they have one coordinate), coordinates, points or frames (their origins
        in world), or ``(primitive, {argument: …})`` for whatever a primitive can express.  A second output with the
        same label, such as another point of the same body, is labelled "crank x (output 1)".
        parameters: None for all.  Drivers keep their values.  Where a freedom is left, the poses change as little as
        possible, and ``result.unique`` tells which outputs depend on that choice.
        """
        given = self._parameters if parameters is None else parameters
        names = tuple(dict.fromkeys([self._parameter_name(p) for p in ([given] if isinstance(given, str) else given)]))
        if not names:
            way = "give some" if self._parameters else "add one with m.parameter(name, value)"
            raise ModelError(f"there are no parameters to differentiate by in mechanism {self.name!r}; {way}")
        if not isinstance(state, State):
            raise ModelError(f"sensitivity was given {state!r}; it must be a State, such as result.state")
        self._checked_state("sensitivity", state)
        with self._at(state):
            system, labels = self._outputs(outputs)
            found: Sensitivity = _sensitivity.sensitivity(self.system, system, labels, state, names, tolerance)
        return found

    def tolerances(
        self,
        state: State,
        outputs: Any,
        tolerances: Mapping[Any, float],
        *,
        samples: int = 100_000,
        seed: int = 0,
        distribution: Literal["normal", "uniform"] = "normal",
        workers: int | None = None,
    ) -> Tolerances:
        """What tolerances ±t of parameters do to outputs: worst case, root of squares, and a Monte Carlo.

        outputs: as of :meth:`sensitivity`.  tolerances: ``{"L": 0.1e-3, …}``.
        samples: parameters drawn from a normal distribution with σ = t/3, or a uniform one; the mechanism is assembled
        for each, on all cores, from the poses of the state and without restarts, which could lead to another branch.
        Values may be beyond the bounds of a parameter.
        seed: of the draws, which depend on the names of the parameters, not on their order.
        """
        began = clock.perf_counter()
        given = _sensitivity.checked_tolerances(tolerances, self._parameter_name)
        check.choice(distribution, "distribution", _sensitivity.FACTORS)
        count = check.count(samples, "samples", 2)
        found = self.sensitivity(state, outputs, given)
        values = _sensitivity.draw(
            given, {**self._drawn, **state.variables}, count, check.count(seed, "seed", 0), distribution
        )
        options = _checked_options(None, {"restarts": 0})
        batch = self._assemble_many(state, None, (), values, workers, None, options, given)
        with self._at(state):
            system, labels = self._outputs(outputs)
            seen = system.with_variables((), tuple(given))
        angles = batch._system.counted_angles
        keys = {key: batch.angles[:, len(batch._system.variable_names) + k] for k, key in enumerate(angles)}
        near = [np.full(count, angle) for angle in _sensitivity.angles_at(seen, state)]
        tail = [keys.get(key, near[k]) for k, key in enumerate(seen.counted_angles)]
        poses = np.column_stack([batch.coordinates.reshape(count, -1), *values.values(), *tail])
        every = _sensitivity.evaluate_many(seen, len(labels), poses[batch.ok], state.time)
        failed = int((~batch.ok).sum())
        seconds = clock.perf_counter() - began
        wraps = _sensitivity.wrapping(seen, len(labels))
        result: Tolerances = _sensitivity.combine(found, given, every, wraps, failed, distribution, seconds)
        return result

    def _outputs(self, outputs: Any) -> tuple[System, list[Any]]:
        """The system whose relations are the outputs, and a label and a unit for each row."""
        if isinstance(outputs, str | Joint | Coordinate | Point | Frame) or not isinstance(outputs, Iterable):
            outputs = [outputs]
        bundles: list[Bundle] = []
        labels: list[Any] = []
        for k, given in enumerate(outputs):
            what = f"output {k}"
            if isinstance(given, Point | Frame):
                self._check_body(what, given.body)
                relation = joints.coincident(self._ground.point(), given)
                words = [f"{given.body.name} {axis}" for axis in "xyz"]
            elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Primitive):
                ends, relation = own.resolved(given[0], given[1], self._coordinate)
                for end in ends:
                    for body in end.bodies if isinstance(end, Coordinate) else (end.body,):
                        self._check_body(what, body)
                rows = given[0].rows
                words = [given[0].name if rows == 1 else f"{given[0].name} {i}" for i in range(rows)]
            else:
                chosen = self._chosen(what, self[given] if isinstance(given, str) else given, None)
                for body in chosen.bodies:
                    self._check_body(what, body)
                relation = Relation(joints.DRIVEN[chosen.kind], chosen.arguments(), (0.0,))
                single = chosen.joint and len(self._joints[chosen.joint].kind.coordinates) == 1
                words = [chosen.joint if single else f"{chosen.joint} {chosen.name}".strip()]
            if not relation.bodies:
                way = ", except with parameters: take its formula, such as (2 * L).value" if relation.nodes else ""
                raise ModelError(f"{what} is on the ground alone; it never changes{way}")
            bundles.append(Bundle(what, [relation]))
            taken = {label.label for label in labels}
            words = [f"{word} ({what})" if word in taken else word for word in words]
            labels += [_sensitivity.Output(w, u) for w, u in zip(words, relation.primitive.units, strict=True)]
        if not bundles:
            raise ModelError("there are no outputs; give joints, coordinates, points or primitives")
        counted = dict.fromkeys([angle for b in bundles for r in b.relations for angle in r.counted_angles])
        system = System(list(self._bodies.values()), bundles, list(counted), None, formulas=self._own_book())
        return system, labels

    def save(self, path: Any, *, units: Mapping[str, str] | None = None) -> None:
        """Write the mechanism to a file ``*.cardan.toml`` or ``*.json``, for :func:`cardan.load`.

        units: such as ``{"length": "mm", "angle": "deg"}``; those of the file that it was read from, or SI.
        Functions are written as expressions.  What a file cannot contain raises a ModelError, and nothing is written.
        An existing file is replaced at once, or not at all.
        """
        _files.save(self, path, units=units)


def _checked_options(options: AssemblyOptions | None, changes: OptionArguments) -> AssemblyOptions:
    made: AssemblyOptions = _options.assembly_options(options, changes)
    return made
