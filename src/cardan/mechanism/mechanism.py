"""Mechanism: the public interface.  Each method is a thin call into the model, or into the layers below."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

from cardan.analysis.motion import Motion
from cardan.analysis.result import AssemblyResult
from cardan.calls import explains
from cardan.dynamics.loads import Load
from cardan.errors import ModelError
from cardan.joints import Joint
from cardan.lazy import LazyModule
from cardan.mechanism.building import Building
from cardan.mechanism.model import Model
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.display import Display
from cardan.system.formulas import Parameter
from cardan.system.html import as_html, table_of
from cardan.system.parts import GROUND, Body, Frame, Point
from cardan.system.state import State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.batch_result import BatchResult
    from cardan.analysis.chunks import Progress
    from cardan.analysis.costs import Cost
    from cardan.analysis.equilibrium import Equilibrium
    from cardan.analysis.interference import Interference, Separation
    from cardan.analysis.linearise import ConstraintEquations
    from cardan.analysis.motion_equations import MotionEquations
    from cardan.analysis.objective import Objective
    from cardan.analysis.options import AssemblyOptions, OptionArguments
    from cardan.analysis.runs import Runs
    from cardan.analysis.sensitivity import Sensitivity, Tolerances
    from cardan.analysis.simulation import Simulation
    from cardan.analysis.simulation_options import RunArguments, SimulationArguments, SimulationOptions, StudyArguments
    from cardan.analysis.vibration import Linearization
    from cardan.coordinates.formulations import Formulation
    from cardan.diagnosis.freedom import Diagnosis
    from cardan.interact.session import Session
    from cardan.study.study import Study

    class Item(Body, Joint, Load):  # type: ignore[misc]  # never made
        """What ``m[name]`` may be: editors then offer the members of bodies, joints and loads."""

        a: Any
        b: Any


# Loaded on first use, so that building a model does not wait for them.
_apart = LazyModule("cardan.analysis.apart")
_one_sided = LazyModule("cardan.analysis.one_sided")
_assemble = LazyModule("cardan.analysis.assemble")
_batch = LazyModule("cardan.analysis.batch")
_build = LazyModule("cardan.dynamics.build")
_elastic = LazyModule("cardan.analysis.elastic")
_elastic_motion = LazyModule("cardan.analysis.elastic_motion")
_elastic_rest = LazyModule("cardan.analysis.elastic_rest")
_equilibrium = LazyModule("cardan.analysis.equilibrium")
_files = LazyModule("cardan.files.writer")  # of a layer above, which m.save calls
_forward = LazyModule("cardan.joints.forward")
_freedom = LazyModule("cardan.diagnosis.freedom")
_interference = LazyModule("cardan.analysis.interference")
_linearise = LazyModule("cardan.analysis.linearise")
_motion_equations = LazyModule("cardan.analysis.motion_equations")
_move = LazyModule("cardan.analysis.move")
_move_apart = LazyModule("cardan.analysis.move_apart")
_objective = LazyModule("cardan.analysis.objective")
_options = LazyModule("cardan.analysis.options")
_run_many = LazyModule("cardan.analysis.run_many")
_sensitivity = LazyModule("cardan.analysis.sensitivity")
_session = LazyModule("cardan.interact.session")
_simulate = LazyModule("cardan.analysis.simulate")
_simulation_options = LazyModule("cardan.analysis.simulation_options")
_solve_rates = LazyModule("cardan.analysis.solve_rates")
_study = LazyModule("cardan.study.study")
_vibration = LazyModule("cardan.analysis.vibration")

SETTABLE = ("gravity", "display", "poses")  # attributes that may be assigned to


def _refuse(drawing: Any, what: str) -> None:
    """ModelError if a mechanism has collisions, which ``what`` does not consider yet."""
    if drawing.contents.collisions:
        _apart.refuse(drawing, what)


def _refuse_friction(drawing: Any, what: str, way: str = "use m.simulate") -> Any:
    """The drawing; ModelError if joints have friction, which ``what`` does not consider yet."""
    for name in drawing.contents.frictions:
        raise ModelError(
            f"{what} does not consider friction of joints yet, and {name!r} has it; {way}, or a copy of the mechanism "
            "without friction="
        )
    return drawing


def _refuse_opening(drawing: Any, what: str) -> Any:
    """The drawing; ModelError if it has contacts that open or flexible bodies, which ``what`` does not consider yet."""
    if drawing.contents.opening:
        _one_sided.refuse(drawing, what)
    return _refuse_flexible(drawing, what)


def _refuse_flexible(drawing: Any, what: str) -> Any:
    """The drawing; ModelError if it has flexible bodies, which ``what`` does not consider yet."""
    if drawing.contents.flexible:
        _elastic.refuse(drawing, what)
    return drawing


@explains(constructor=True)
class Mechanism(Building):
    """Bodies, the joints between them, and the loads on them.  All share one set of names.

    Add bodies with :meth:`body`, joints with :meth:`revolute`, :meth:`spherical`, …, loads with :meth:`spring`,
    :meth:`force`, …, then :meth:`assemble`, :meth:`move`, :meth:`simulate` or :meth:`diagnose`.  Only dynamics uses
    ``gravity`` [m/s²] and loads.  ``poses`` are states to be saved with it: ``m.poses["open"] = result.state``.
    """

    if not TYPE_CHECKING:  # checkers know the attributes

        def __setattr__(self, name: str, value: Any) -> None:
            if not (name.startswith("_") or name in SETTABLE or hasattr(type(self), name)):
                raise check.unknown(name, f"attribute of mechanism {self.name!r} that can be set", SETTABLE)
            object.__setattr__(self, name, value)

    def __init__(self, name: str = "mechanism", *, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        self._model = Model(self, name, gravity)
        self.poses: dict[str, State] = {}

    @property
    def name(self) -> str:
        """The name; a copy may have another."""
        return self._model.name

    @property
    def ground(self) -> Body:
        """The fixed body; its axes are the world's."""
        return self._model.ground

    @property
    def gravity(self) -> Triple:
        """Acceleration of gravity [m/s²] in world, of numbers or formulas of parameters."""
        return self._model.gravity

    @gravity.setter
    def gravity(self, value: Any) -> None:
        self._model.set_gravity(value)

    @property
    def display(self) -> Display:
        """Units of lengths and angles in texts: ``m.display = cd.Display(length="inch")``; arrays are always SI."""
        return self._model.display

    @display.setter
    def display(self, value: Display) -> None:
        if not isinstance(value, Display):
            raise ModelError(f"the display is {value!r}; it must be a cd.Display, such as cd.Display(length='mm')")
        self._model.assign(display=value)

    @property
    def bodies(self) -> Mapping[str, Body]:
        """The movable bodies by name, in the order they were made."""
        return dict(self._model.bodies)

    @property
    def joints(self) -> Mapping[str, Joint]:
        """The joints by name, in the order they were made."""
        return dict(self._model.joints)

    @property
    def loads(self) -> Mapping[str, Load]:
        """The loads by name, in the order they were made."""
        return dict(self._model.loads)

    @property
    def rate_rows(self) -> Mapping[str, Joint]:
        """The constraints of velocities alone by name, in the order they were made."""
        return dict(self._model.rate_rows)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The design parameters by name, in the order they were made."""
        return dict(self._model.parameters)

    def __getitem__(self, name: str) -> Item:
        found = self._model.item(name) if isinstance(name, str) else None
        if found is None:
            if name == GROUND:
                ground: Any = self._model.ground
                return ground
            raise check.unknown(name, "body, joint, load or parameter", self)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self._model.item(name) is not None or name == GROUND)

    def __iter__(self) -> Iterator[str]:
        return iter(self._model)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self, name: str | None = None) -> Self:
        """An independent copy."""
        made = copying.deepcopy(self)
        if name is not None:
            made._model.name = check.name(name, "the mechanism")
        return made

    def __copy__(self) -> Self:
        return self.copy()

    def description(self) -> tuple[Any, ...]:
        """Everything that defines the mechanism, as plain values."""
        return self._model.description()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return self.description() == other.description()

    __hash__ = None  # type: ignore[assignment]  # it can be edited

    def table(self) -> dict[str, list[Any]]:
        """The joints as columns by title, one row each, for ``pandas.DataFrame(m.table())``."""
        items = list(self._model.joints.values())
        return {
            "joint": [joint.name for joint in items],
            "kind": [joint.kind.name for joint in items],
            "bodies": [" – ".join(body.name for body in joint.bodies) for joint in items],
            "equations": [joint.equations for joint in items],
            "coordinates": [", ".join(joint.kind.coordinates) for joint in items],
        }

    def _repr_html_(self) -> str:
        bodies = [(body.name, *body.position, body.fixed) for body in self._model.bodies.values()]
        return as_html(repr(self), (("body", "x [m]", "y [m]", "z [m]", "fixed"), bodies), table_of(self.table()))

    def __repr__(self) -> str:
        own = self._model
        loads = f", {len(own.loads)} loads" if own.loads else ""
        rows = f", {len(own.rate_rows)} rate rows" if own.rate_rows else ""
        return f"<Mechanism {self.name!r}: {len(own.bodies)} bodies, {len(own.joints)} joints{loads}{rows}>"

    @property
    def system(self) -> System:
        """The packed, frozen system; made on demand."""
        return self._model.drawing.system

    @property
    def state(self) -> State:
        """The authored poses."""
        return self.system.state()

    def state_at(self, values: Mapping[Any, Any] | None = None) -> State:
        """Forward kinematics: the state in which coordinates of joints have given values, the others those as drawn.

        values: ``{"A": 0.3, "slide.displacement": 0.1, "ball": orientation, "free_body": (position, orientation)}``: by
        name of a joint with one coordinate, or "joint.coordinate", or a joint or coordinate; a ball joint takes the
        orientation of b in a, in any form of ``orientation=``; a body without a joint takes its pose.
        Bodies are placed along a spanning tree that prefers the given joints.  Joints that close loops, and parts that
        must not overlap, are not considered: assemble the result, ``m.assemble(m.state_at(…))``.
        """
        return _forward.state_at(_refuse_flexible(self._model.drawing, "state_at"), {} if values is None else values)

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
        With flexible bodies their elastic coordinates are free, and their energy is the least.
        options: a :class:`cardan.AssemblyOptions`.  Its fields may also be given one by one: ``method``,
        ``formulation``, ``tolerance``, ``max_iterations``, ``max_seconds``, ``restarts``, ``seed``, ``spring``.
        workers: threads that share each spring step of the methods ``"gradient"`` and ``"hybrid"``; 1 if it is not
        given.  The result does not depend on it, to the last bit.
        """
        own: AssemblyOptions = _options.assembly_options(options, changes)
        result: AssemblyResult
        drawing = self._model.drawing if start is None else self._model.begin("assemble", start)
        if drawing.contents.flexible:
            return _elastic.assemble_elastic(drawing, free, start, time, own, (workers, least))
        if drawing.contents.collisions and least is None:
            if drawing.contents.opening:
                _one_sided.refuse(drawing, "assemble with collisions")
            result = _apart.assemble_apart(drawing, free, start, time, own, workers)
            if not result.ok:
                result._drawing = drawing
            return result
        system = drawing.with_free(free) if free else drawing.system
        if least is not None:
            if system.variables.free:
                _refuse(_refuse_opening(drawing, "assemble with least="), "assemble with least=")
            return _assemble.assemble_least(system, start, time, own, workers, least)
        if drawing.contents.opening:
            result = _one_sided.assemble_open(drawing, free, start, time, own, workers)
        else:
            result = _assemble.assemble(system, start, time, own, workers)
        if not result.ok:
            result._drawing = drawing
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
        own: AssemblyOptions = _options.assembly_options(options, changes)
        drawing = _refuse_opening(self._model.drawing, "assemble_many")
        given = (drawing, starts, time, free, values, own, workers, progress)
        return _batch.assemble_many(*given)

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
        drawing = _refuse_opening(self._model.begin("move", start), "move")
        options = {"tolerance": tolerance, "max_seconds": max_seconds, "progress": progress}
        motion: Motion
        if drawing.contents.collisions:
            motion = _move_apart.move_apart(drawing, self, times, start, **options)
        else:
            motion = _move.move(drawing.system, times, start, **options)
        motion._needs = _build.Inverse.of(drawing)
        motion._source = self, drawing.contents.edits
        return motion

    def simulate(
        self,
        duration: float,
        state: State | Mapping[Any, Any] | None = None,
        *,
        options: SimulationOptions | None = None,
        **changes: Unpack[SimulationArguments],
    ) -> Simulation:
        """The motion under gravity and loads over a duration [s], from a state with its velocities, or from rest.

        options: a :class:`cardan.SimulationOptions`, which explains them.  Its fields may also be given one by one:
        ``step`` or ``rtol``, ``times``, ``method``, ``max_step``, ``max_seconds``, ``progress``, ``stabilization``,
        ``gain``, ``tolerance``, ``contacts``, ``impacts``.
        If it is interrupted by the keyboard, the result contains what was reached.
        With flexible bodies the result is a :class:`cardan.FlexibleSimulation`, and fewer options are valid.
        """
        drawing = self._model.begin("simulate", state)
        if drawing.contents.flexible:
            own: SimulationOptions = _simulation_options.simulation_options(options, changes)
            return cast("Simulation", _elastic_motion.simulate(drawing, duration, state, own))
        if (changes.get("contacts") or getattr(options, "contacts", "auto")) != "steps":
            _refuse(drawing, "simulate")
        simulation: Simulation = _simulate.simulate(drawing, duration, state, options, changes)
        simulation._source = self, drawing.contents.edits
        return simulation

    def objective(
        self,
        duration: float,
        cost: Cost,
        over: Iterable[str | Parameter],
        state: State | Mapping[Any, Any] | None = None,
        *,
        options: SimulationOptions | None = None,
        **changes: Unpack[SimulationArguments],
    ) -> Objective:
        """A cost of runs as a function of parameters, with its exact gradient: ``value, gradient = f(x)``.

            f = m.objective(1.0, cd.integral(lambda s: s.rate("A") ** 2), over=["k", "L"], step=1e-3)
            found = scipy.optimize.minimize(f, f.x0, jac=True, bounds=f.bounds)

        cost: of cd.final, cd.integral, cd.mean, cd.peak.  over: the parameters that x stands for.  All others: as of
        :meth:`simulate`.  Every run has the start of the run at the present values, assembled again at x.
        """
        own: SimulationOptions = _simulation_options.simulation_options(options, changes)
        drawing = _refuse_flexible(self._model.begin("objective", state), "objective")
        if own.contacts != "steps":
            _refuse(drawing, "objective")
        found: Objective = _objective.objective(drawing, duration, cost, over, state, own)
        return found

    def move_many(
        self,
        times: Iterable[float],
        *,
        values: Mapping[Any, Any] | None = None,
        starts: State | Sequence[State] | None = None,
        outputs: Any = (),
        tolerance: float = 1e-12,
        max_seconds: float | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Runs:
        """Many driven motions: what :meth:`move` gives for each row of values and each start, on all cores.

        starts: the state, or a list of states, in which the motions begin; as drawn where it is not given.
        times, tolerance: as of :meth:`move`.  values, outputs, workers, progress, max_seconds: as of
        :meth:`simulate_many`; a driven motion has no energies and no events.
        """
        drawing = _refuse_opening(self._model.drawing, "move_many")
        rows = _run_many.Starts(drawing, values, starts, "starts")
        return _run_many.move_many(drawing, self, times, rows, outputs, tolerance, max_seconds, workers, progress)

    def simulate_many(
        self,
        duration: float,
        *,
        values: Mapping[Any, Any] | None = None,
        states: State | Sequence[State] | None = None,
        outputs: Any = (),
        workers: int | None = None,
        progress: Progress | None = None,
        options: SimulationOptions | None = None,
        **changes: Unpack[RunArguments],
    ) -> Runs:
        """Many simulations: what :meth:`simulate` gives for each row of values and each state, on all cores.

        values: of parameters by name, shape (n,) each.  states: in which the runs begin, one for all or one for each,
        with their velocities; as drawn, and at rest, where it is not given.
        outputs: what is kept of each run, a list or ``{name: output}``.  At each output time: a joint or coordinate,
        a point or frame (its position), ``"rate(A)"``, ``"acceleration(A)"``, ``"effort(motor)"``, ``"force(A)"`` and
        ``"torque(A)"`` (of the reaction on b), ``"x(crank)"``, ``"kinetic"``, ``"potential"``, ``"energy"``,
        ``"state"``.  As one number: ``"max(…)"``, ``"min(…)"``, ``"mean(…)"``, ``"rms(…)"``, ``"first(…)"``,
        ``"final(…)"`` of these, also as ``("max", joint)``; ``"time(stop)"`` of a limit or contact,
        ``"time(A > 0.5)"``; or a function of the :class:`cardan.Simulation` that gives a number.
        workers: threads; None for one per core.  No number depends on it, to the last bit.
        progress: called now and then with the number of runs done, and of all runs.
        options: as of :meth:`simulate`; ``max_seconds`` is for all runs together.
        Interrupted by the keyboard, the result has the runs that were finished.
        """
        own: SimulationOptions = _simulation_options.simulation_options(options, changes)
        drawing = _refuse_flexible(self._model.drawing, "simulate_many")
        if own.contacts != "steps":
            _refuse(drawing, "simulate_many")
        rows = _run_many.Starts(drawing, values, states, "states")
        return _run_many.simulate_many(drawing, duration, rows, outputs, own, workers, progress)

    def study(
        self,
        values: Any,
        outputs: Any,
        *,
        duration: float | None = None,
        times: Iterable[float] | None = None,
        state: State | None = None,
        tolerance: float = 1e-12,
        options: SimulationOptions | None = None,
        **changes: Unpack[StudyArguments],
    ) -> Study:
        """Many runs over a sample of the parameters, in parts that can be stopped, continued and divided among workers.

        values: a sample, ``cd.sample.grid(…)``, ``latin``, ``normal`` or ``uniform``; or the rows of a table,
        ``{parameter: list}``, a list of ``{parameter: number}``, or a pandas frame.
        duration [s]: of simulations; without it driven motions at ``times``, and without these assemblies.
        outputs: as of :meth:`simulate_many`, or for assemblies as of :meth:`sensitivity`.
        state: in which every run begins, with its velocities; as drawn where it is not given.
        times [s]: of a motion, or the output times of a simulation.  tolerance: of a motion or assembly.
        options: of simulations, as of :meth:`simulate`, also one by one.
        ``study.run(path="runs")`` computes; see :class:`cardan.Study`.  The study has the mechanism as it is now.
        """
        drawing = _refuse_flexible(self._model.drawing, "study")
        if duration is None:
            _refuse_opening(drawing, "study without duration=")
        elif (changes.get("contacts") or getattr(options, "contacts", "auto")) != "steps":
            _refuse(drawing, "study")
        found: Study = _study.study(self, values, outputs, state, duration, times, tolerance, options, changes)
        return found

    def equilibrium(
        self, state: State | Mapping[Any, Any] | None = None, *, max_iterations: int = 200, tolerance: float = 1e-12
    ) -> Equilibrium:
        """A pose near a state, or the drawing, where the mechanism rests under gravity and loads.

        The search follows the forces, so that it ends at a stable equilibrium, except if it starts at an unstable one;
        ``stable`` tells.  Limits hold.  Drivers keep the values of the time of the state.  Dampers and friction have no
        force at rest.  Reactions and efforts: ``eq.reaction("A")``, ``eq.effort("motor")``.
        tolerance: of the assembly at the start, as in :meth:`assemble`.
        """
        drawing = _refuse_friction(self._model.begin("equilibrium", state), "equilibrium")
        if drawing.contents.flexible:
            return _elastic_rest.find_equilibrium(drawing, state, max_iterations, tolerance)
        _refuse_opening(drawing, "equilibrium")
        found: Equilibrium = _equilibrium.find_equilibrium(drawing, state, max_iterations, tolerance)
        if drawing.contents.collisions:
            _apart.refuse_touching(drawing, "equilibrium", found.state)
        if found._instant is not None:
            found._instant._source = self, drawing.contents.edits
        return found

    def linearize(self, state: State | Mapping[Any, Any] | None = None, *, tolerance: float = 1e-12) -> Linearization:
        """Small motions about an equilibrium: frequencies [Hz], damping ratios, modes, and the matrix A of ż = A z.

        state: at rest, in equilibrium, such as ``m.equilibrium().state``.  Drivers keep the values of its time.
        tolerance: of the assembly of the state, as in :meth:`assemble`.
        """
        drawing = _refuse_friction(self._model.begin("linearize", state), "linearize")
        if drawing.contents.flexible:
            return _elastic_rest.linearize(drawing, state, tolerance)
        _refuse_opening(drawing, "linearize")
        if drawing.contents.collisions:
            _apart.refuse_touching(drawing, "linearize", self.assemble(state, tolerance=tolerance).state)
        return _vibration.linearize(drawing, state, tolerance)

    def solve_rates(self, state: State, given: Mapping[Any, float] | None = None) -> State:
        """The state with velocities that satisfy every joint and driver, and given rates of coordinates.

        given: rates [rad/s] or [m/s] by joint (its name, if it has one coordinate) or coordinate: ``{"A": 2.0,
        "pin.angle": 1.0}``.
        What they leave free has the least kinetic energy.  Raises ModelError, with names, if rates contradict each
        other.
        """
        drawing = _refuse_opening(self._model.drawing, "solve_rates")
        if drawing.contents.collisions:
            _apart.refuse_touching(drawing, "solve_rates", state)
        return _solve_rates.solve_rates(drawing, state, given)

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
        drawing = _refuse_flexible(self._model.begin("session", state), "session")
        if drawing.contents.opening:
            _one_sided.refuse(drawing, "session")
        options = {"mode": mode, "rate": rate, "hand": hand, "time": time, "closed": closed}
        options |= {"formulation": formulation, "tolerance": tolerance}
        return _session.Session(drawing, self, state, **options)

    def diagnose(
        self, state: State | None = None, *, tolerance: float = 1e-12, free: Iterable[str | Parameter] = ()
    ) -> Diagnosis:
        """Degrees of freedom, redundancy and residuals in a state (the authored one where none is given).

        tolerance: as in :meth:`assemble`; the state counts as assembled where every residual is within it, and
        motions along which every residual stays within it count as free.
        free: parameters that are unknowns too; one that nothing determines is reported as a freedom, by name.
        """
        drawing = _refuse_opening(self._model.drawing, "diagnose")
        if state is None:
            state = drawing.system.state()
        elif not isinstance(state, State):
            raise ModelError(f"diagnose was given {state!r}; it must be a State, such as result.state")
        found: Diagnosis = _freedom.diagnose(drawing.at(state).with_free(free), state, tolerance)
        return _apart.diagnose_apart(drawing.at(state), found, state) if drawing.contents.collisions else found

    def constraint_equations(
        self,
        state: State | None = None,
        joint: str | Joint | None = None,
        *,
        sparse: bool | None = None,
        coordinates: Literal["manifold", "euler_parameters"] = "manifold",
    ) -> ConstraintEquations:
        """Value, Jacobian and γ of all constraints in a state (the authored one where none is given), or of one joint.

        Rows are in the order of m.joints, then rate rows, such as "on.roll" of a contact; columns are (δr in world, δθ
        in body axes) of each body, in the order of m.bodies.  sparse: of the Jacobian; None: if it is large.
        coordinates: "euler_parameters": seven columns (ṙ, ṗ) per body.  See :class:`cardan.ConstraintEquations`.
        """
        drawing = _refuse_opening(self._model.drawing, "constraint_equations")
        if drawing.contents.collisions and joint is None:
            _apart.refuse_touching(drawing, "constraint_equations", state)
        return _linearise.constraint_equations(drawing, state, joint, sparse, coordinates)

    def motion_equations(
        self,
        state: State | None = None,
        *,
        sparse: bool | None = None,
        coordinates: Literal["manifold", "euler_parameters"] = "manifold",
    ) -> MotionEquations:
        """M, Q_e and Q_v of  M v̇ + C_qᵀλ = Q_e + Q_v  in a state (the authored one where none is given).

        Columns are those of :meth:`constraint_equations`.  A state without velocities is at rest.  Forces of joints,
        limits and contacts are in λ, not here.  sparse: of M; None: if it is large.
        See :class:`cardan.MotionEquations`.
        """
        drawing = _refuse_flexible(self._model.drawing, "motion_equations")
        _refuse_friction(drawing, "motion_equations")
        return _motion_equations.motion_equations(drawing, state, sparse, coordinates)

    def mass_matrix(
        self,
        state: State | None = None,
        *,
        sparse: bool | None = None,
        coordinates: Literal["manifold", "euler_parameters"] = "manifold",
    ) -> Any:
        """M of :meth:`motion_equations`."""
        return self.motion_equations(state, sparse=sparse, coordinates=coordinates).mass

    def jacobian(
        self,
        of: Point | Frame | Body | str,
        state: State | None = None,
        *,
        by: str | Joint | Iterable[str | Joint] = "bodies",
        sparse: bool | None = None,
    ) -> Any:
        """Derivative of the position of a point [m] in world, shape (3, n), or of a frame or body, shape (6, n).

        of: a point, a frame, a body, or the name of a body.
        The last three rows of a frame are its rotation [rad] in world axes.
        by: "bodies": n = 6·bodies, (δr in world, δθ in body axes) of each body, in the order of m.bodies, whatever the
        joints; or "drivers", or the names of some drivers: one column for each, [per rad or per m], along the motion
        that the joints allow, with the other drivers at rest.
        """
        drawing = _refuse_opening(self._model.drawing, "jacobian")
        if drawing.contents.collisions and by != "bodies":
            _apart.refuse_touching(drawing, "jacobian by drivers", state)
        return _linearise.jacobian(drawing, of, state, by, sparse)

    def distance_between(self, a: str | Body, b: str | Body, state: State | None = None) -> Separation:
        """The signed gap [m] of two bodies in a state (the authored one where none is given), with its two points.

        It is their distance, or minus the least depth where they overlap; of all solids that are attached to them.
        Attached curves and surfaces, planes too, have no inside and are left out.
        """
        return _interference.distance_between(self._model.drawing, a, b, state)

    def interference(self, state: State | None = None, pairs: Any = "all") -> Interference:
        """Which bodies overlap in a state (the authored one where none is given): depth, place and volume.

        pairs: "all" but those that a joint, contact or coupling joins; or a list of pairs of bodies or their names.
        ``left_out`` of the result lists what was not compared, and why.  A listed body without a solid is refused.
        Overlaps over a motion: :meth:`cardan.Motion.clashes`.
        """
        return _interference.interference(self._model.drawing, state, pairs)

    def sensitivity(
        self,
        state: State,
        outputs: Any,
        parameters: Iterable[str | Parameter] | None = None,
        *,
        tolerance: float = 1e-10,
    ) -> Sensitivity:
        """Exact derivatives of outputs with respect to parameters, in an assembled state.

        outputs: a list of joints and coordinates, also by name, "joint" or "joint.coordinate"; points or frames (their
        origins in world), or ``(primitive, {argument: …})`` for whatever a primitive can express.  A second output with
        the same label, such as another point of the same body, is labelled "crank x (output 1)".
        parameters: None for all.  Drivers keep their values.  Where a freedom is left, the poses change as little as
        possible, and ``result.unique`` tells which outputs depend on that choice.
        """
        drawing = _refuse_opening(self._model.drawing, "sensitivity")
        if drawing.contents.collisions:
            _apart.refuse_touching(drawing, "sensitivity", state)
        return _sensitivity.sensitivity(drawing, state, outputs, parameters, tolerance)

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
        drawing = _refuse_opening(self._model.drawing, "tolerances")
        if drawing.contents.collisions:
            _apart.refuse_touching(drawing, "tolerances", state)
        given = (outputs, tolerances, samples, seed, distribution, workers)
        return _sensitivity.tolerances(drawing, state, *given)

    def save(self, path: Any, *, units: Mapping[str, str] | None = None) -> None:
        """Write the mechanism to a file: ``*.cardan.toml`` or ``*.json`` for :func:`cardan.load`, or a page ``*.html``.

        The page shows it, and its parts can be dragged there, without Python and without a server.
        units: such as ``{"length": "mm", "angle": "deg"}``; those of the file that it was read from, or SI.
        Functions are written as expressions.  What a file cannot contain raises a ModelError, and nothing is written.
        An existing file is replaced at once, or not at all.
        """
        with self._model.lock:
            _files.save(self, path, units=units)
