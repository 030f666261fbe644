"""The operator in the loop: hands grasp bodies, the mechanism follows with closed joints and acts on the hands."""

from __future__ import annotations

import threading
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from cardan.analysis.assemble import assemble
from cardan.analysis.contact_ends import closed_contacts, lost_contacts, refuse_jumps
from cardan.analysis.options import AssemblyOptions
from cardan.calls import explains
from cardan.constraints.signal import GivenRate
from cardan.coordinates import formulations, rates, tree, verdict
from cardan.dynamics import joint_inertias, massless
from cardan.dynamics import tables as dynamics_tables
from cardan.dynamics.build import equations_of, metric_equations
from cardan.dynamics.equations import AnyArray
from cardan.dynamics.integrate import Event, Integration, Settings
from cardan.errors import ModelError, SessionError
from cardan.interact import tables
from cardan.interact.dynamic import DynamicRun
from cardan.interact.hand import Hand
from cardan.interact.initial_closure import Closing
from cardan.interact.range import Explorer, Range, probed
from cardan.interact.record import Record
from cardan.interact.servo import Servo
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.solvers.tables import Outcome
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.drawing import Drawing
from cardan.system.state import FloatArray, State
from cardan.system.system import IntArray

if TYPE_CHECKING:
    from cardan.interact.touching import Contacts
    from cardan.joints.gaps import Touching

_apart = LazyModule("cardan.analysis.apart")
_blocks = LazyModule("cardan.solvers._blocks")
_hands = LazyModule("cardan.interact._hands")
_kinematic = LazyModule("cardan.interact._kinematic")
_soft = LazyModule("cardan.dynamics._soft")
_tables = LazyModule("cardan.system._tables")
_touching = LazyModule("cardan.interact.touching")

MODES: Final = ("kinematic", "dynamic")
HAND_KINDS: Final = ("constraint", "spring")
SUBSTEPS: Final = 8  # of one cycle, at the most
STIFFNESS: Final = 1.0  # [N/m] of a hand, where none is given: its force is the distance to its target in metres
FREQUENCY: Final = 30.0  # [rad/s] of the total mass on the spring of a hand in a dynamic session, critically damped
PAUSE: Final = 5.0  # [s] within which a servo ends its cycle
SMALLEST: Final = 1e-3  # of the extent: joints of a smaller piece are closed relative to this
LEAST_CLOSED: Final = 1e-11  # of the extent, or rad: residual of a pose that corrections do not close further
LEAST_DRAWN: Final = 1e-12  # the same, where the extent of a piece is only how far apart it was drawn
LONGEST: Final = 0.1  # of the size of contacts, or rad: a cycle that moves more does not tell which contact ends
UNMOVED: Final = 1e-9  # of the extent: a point that a unit rotation moves by less is on its axis
COPIED: Final = (
    "copy or pickle session.state, and continue with m.session(state), or what record.stop() returns, and repeat it "
    "with record.replay(m)"
)

RUNNING, MOVING = int(Outcome.RUNNING), int(tables.MOVING)  # ints: an enum member takes longer to compare


class SessionStatus(IntEnum):
    """Result of a cycle."""

    IDLE = tables.IDLE  # no hand, and nothing to drive; the joints are closed
    REACHED = tables.REACHED  # every hand is at its target
    MOVING = tables.MOVING  # on the way
    SATURATED = tables.SATURATED  # as near to the targets as joints and limits allow
    STUCK = tables.STUCK  # no step closes the joints further; the last pose is kept
    FAILED = tables.FAILED  # numbers are not finite; the last pose is kept


class SessionEvent(NamedTuple):
    """What happened in a cycle: "bifurcation", "limit reached", "limit left", "contact ends", "bad target", and "parts
    touch" if parts that must not overlap begin to press against each other.

    Of a dynamic cycle that fails, once: "force along a motion without mass", "motion without mass", "no finite force",
    "turns too far", or "not finite".
    The end of a contact is noted if :meth:`Session.step` cannot move past it, but not while a servo runs.
    """

    cycle: int
    what: str
    name: str  # of the limit, of the contact, of the load, of the body, or of the pair


CONTACT_ENDS: Final = "contact ends"
PARTS_TOUCH: Final = "parts touch"
EVENT_NAMES: Final = {
    tables.BIFURCATION: "bifurcation",
    tables.LIMIT_REACHED: "limit reached",
    tables.LIMIT_LEFT: "limit left",
    tables.BAD_TARGET: "bad target",
}


@explains(besides=("step",))
class Session:
    """A mechanism that an operator moves, cycle by cycle; made by :meth:`cardan.Mechanism.session`.

    One thread uses it at a time.  ``notes``: contacts that were drawn apart or on the other side, and
    what a dynamic session assumes about masses.
    """

    def __init__(
        self,
        drawing: Drawing,
        owner: Any,
        state: Any,
        *,
        mode: str = "kinematic",
        rate: float = 1000.0,
        hand: str = "constraint",
        time: float | None = None,
        closed: bool = True,
        formulation: formulations.Formulation = "manifold",
        tolerance: float = verdict.TOLERANCE,
    ) -> None:
        """drawing: of the mechanism; later changes of it do not matter to the session.

        owner: the mechanism, whose bodies and joints the methods accept.
        """
        system = drawing.system
        self._drawing, self._kinematics = drawing, system
        self._owner = owner
        self._ended: tuple[str, ...] = ()  # contacts that ended in the last cycle
        self._has_failed = False  # in the last dynamic cycle
        self._numbers = {name: k for k, name in enumerate(system.names)}
        self.hand = check.choice(hand, "hand", HAND_KINDS)
        self._mode = check.choice(mode, "mode", MODES)
        if mode == "dynamic":
            refuse_jumps(system)
        self.rate = check.positive(rate, "rate")
        self._hands: list[Hand | None] = [None] * tables.MOST_HANDS
        self._lock = threading.Lock()
        # one permit to use the session, taken by pop, which is atomic and faster than a lock
        self._permits: list[None] = [None]
        self._recording: Record | None = None
        self._servo: Servo | None = None
        self._events: list[SessionEvent] = []
        self._seen = 0
        self._is_closed = False
        self._kernel: Any  # of a cycle; None if it is dynamic
        self._places: IntArray  # addresses of the arrays of the kernel
        self._closing: Closing | None = None
        self._contacts: Contacts | None = None
        if drawing.contents.collisions:
            self._refuse_collisions(system)
            self._contacts = _touching.Contacts(self, _apart.colliding(drawing.contents))
        self.notes: tuple[str, ...] = ()
        if check.flag(closed, "closed"):
            options = AssemblyOptions(formulation=formulation, tolerance=tolerance)
            self._begin(state, getattr(state, "time", None) if time is None else time, options)
        else:
            self._closing = Closing(system, state, time, formulation, tolerance)
            self._kernel, self._places = self._closing.kernel, self._closing.places

    def _begin(self, state: Any, time: float | None, options: AssemblyOptions) -> None:
        """Let hands act from a state on, which is assembled."""
        system = self._kinematics
        system.refuse_timed("a session")
        if self._contacts is None:
            found = assemble(system, state, time, options)
        else:
            found = _apart.assemble_apart(self._drawing, (), state, time, options)
        if not found.ok:
            raise ModelError(f"the start of a session must satisfy every joint; {found.text()}")
        mode = self.mode
        if found._drawn is not None:  # there are contacts
            self.notes += found.notes
        # in a kinematic session with a size of each body for its mass
        if mode == "dynamic":
            self._equations, told = equations_of(self._drawing)
            self.notes += tuple(told)
            for name in self._drawing.contents.frictions:
                raise ModelError(
                    f"joint {name!r} has friction, which dynamic sessions do not consider yet; use mode='kinematic', "
                    "or m.simulate"
                )
            for stop in self._equations.stops:
                if stop.restitution:
                    raise ModelError(
                        f"limit {stop.name!r} has restitution={stop.restitution:g}, which dynamic sessions do not "
                        "consider yet; use mode='kinematic', or m.simulate"
                    )
        else:
            self._equations = metric_equations(self._drawing)
        e = self._equations
        if mode == "kinematic":
            driven = [signal.name for _, signal in e.system.signals if isinstance(signal, GivenRate)]
            if driven:
                raise ModelError(
                    f"rate row {driven[0]!r} has a given rate, but no time passes in a kinematic session; "
                    "use mode='dynamic', or remove it"
                )
        self._system = own = e.system
        self._time = found.state.time
        self._origin = own.origin
        known = {**getattr(state, "angles", {}), **found.state.angles}
        angles = np.array([known.get(key, 0.0) for key in own.counted_angles])
        q = formulations.to_reference(own, found.state.coordinates, angles)
        none: FloatArray = np.empty(0)
        given = getattr(state, "velocities", None) if mode == "dynamic" else None
        if given is not None and state.names != found.state.names:  # another order of the bodies
            given = given[[state.names.index(name) for name in found.state.names]]
        v = rates.from_origins(own, found.state, given)
        kind = DynamicRun if mode == "dynamic" else Integration
        self._run = kind(e, q, v, self._time, none, end=self._time + 1.0, settings=Settings("rk4", 1.0 / self.rate))
        floats = e.floats_at(self._time)
        for place, _ in own.signals:
            self._run.floats[place] = floats[place]
        self._idle: dict[int, FloatArray] = {}
        if mode == "dynamic":
            self._idle, idle_notes = massless.idle_twists(self._run)
            self.notes += idle_notes
        self._coordinates: FloatArray = np.array(found.state.coordinates)
        self._make_tables()
        self._keep_start()

    def _refuse_collisions(self, system: Any) -> None:
        """ModelError for what cycles with collisions do not consider."""
        name = next(iter(self._drawing.contents.collisions))
        if self.mode == "dynamic":
            raise ModelError(
                f"collide {name!r}: dynamic sessions do not consider collisions yet; use mode='kinematic', or remove "
                f"it from a copy: c = m.copy(); c.remove({name!r})"
            )
        if system.rate_constraints:
            raise ModelError(
                f"collide {name!r}: a session does not consider collisions together with rate rows yet; remove one of "
                "them from a copy: c = m.copy(); c.remove(…)"
            )
        parts = _apart.colliding(self._drawing.contents)
        for owner, solid in zip(parts.owners, parts.solids, strict=True):
            if solid.is_half_space and owner in self._numbers:
                raise ModelError(
                    f"collide {name!r}: body {owner!r} moves and has a half-space, which a session does not consider; "
                    f"attach a box to {owner!r} instead"
                )

    def _finish_closing(self) -> None:
        """Let hands act from now on, if the joints are closed."""
        closing = self._closing
        if closing is not None:
            if not closing.is_met:
                raise SessionError(
                    "the joints of this session are not closed yet; call step() until it returns SessionStatus.IDLE"
                )
            self.notes = closed_contacts(self._kinematics, closing.drawn, closing.state)
            self._begin(closing.state, closing.state.time, AssemblyOptions(tolerance=closing.tolerance))
            self._control.cycles = closing.iterations
            self._closing = None

    def _make_tables(self) -> None:
        """Tables that the kernels share; they keep their arrays alive."""
        from cardan.kernel.memory import address_of

        run, e, system = self._run, self._equations, self._system
        bodies, n = len(system.names), e.equations.size
        n6 = dynamics_tables.WIDTH * bodies
        pieces = system.pieces
        lengths = [piece.system.unit for piece in pieces] or [system.unit]
        bar = max(SMALLEST, min(1.0, min(lengths) / system.unit))
        has_size = all([piece.system.own_length for piece in pieces])
        self._control = tables.Control.new(
            closed_bar=bar,
            least_closed=bar * (LEAST_CLOSED if has_size else LEAST_DRAWN),
            trust=1.0,
            most_substeps=SUBSTEPS,
            looped=float(len(tree.spanning_tree(system).paths) > 0),  # joints of a tree are never singular
        )
        self._control.as_floats[: dynamics_tables.Control.size] = run.control.as_floats
        run.control = self._control
        self._q = run.q
        offsets = _soft.plan_work(tables.MOST_ROWS, bodies, n)
        sizes = {"open": tables.MOST_ROWS, "most": tables.MOST_ROWS}
        self._soft = dynamics_tables.Soft.new(**sizes, which=tables.EVERY, pieces=offsets)
        self._hand_floats: FloatArray = np.zeros(tables.MOST_HANDS * tables.Hand.size)
        noise = np.random.default_rng(0).standard_normal(n6)
        values = [run.floats[place] for place, _ in system.signals]
        self._goals: FloatArray = np.repeat(np.array(values, dtype=np.float64), 2) if values else np.zeros(1)
        self._ring: AnyArray = np.zeros(tables.MOST_EVENTS, dtype=tables.Event.dtype)
        self._vectors: FloatArray = np.concatenate([noise, np.zeros(n6 + n), noise])
        self._frames: FloatArray = np.ascontiguousarray(system.reference_frames).reshape(-1)
        job = run.job
        if isinstance(run, DynamicRun):
            run.take(self._soft, self._hand_floats)
        self._soft_memory: FloatArray = np.zeros(offsets[-1])
        soft = {"soft": self._soft, "soft_floats": self._hand_floats, "soft_memory": self._soft_memory}
        job.write(soft_evaluator=_hands.EVALUATE, **soft)
        self._step_floats, self._noise = self._vectors[n6 + n : n6 + n + n6], self._vectors[-n6:]
        self._poses = self._coordinates.reshape(-1)
        entries = e.problem.sizes.entries
        is_dynamic = isinstance(run, DynamicRun)
        self._table = tables.Session.new(
            cycle=0 if is_dynamic else _kinematic.CYCLE,
            job=job,
            hands=self._hand_floats,
            frames=self._frames,
            origin=system.origin,
            poses=self._poses,
            first_v=self._vectors[:n6],
            first_u=self._vectors[n6 : n6 + n],
            noise=self._noise,
            goals=self._goals,
            step=self._step_floats,
            along=np.zeros(n6),
            total=np.zeros(n6),
            last_stage=np.zeros(n6),
            stage_rates=np.zeros(n),
            other_jacobian=np.zeros(entries),
            way=np.zeros(n6),
            events=self._ring,
            record=np.zeros(tables.Entry.size),
        )
        if is_dynamic:
            self._kernel, self._places = None, self._table.as_ints
        else:
            self._arrays = self._table.as_ints, self._control.as_floats, self._q, run.work
            self._kernel, self._places = _blocks.run_at, np.array([address_of(array) for array in self._arrays])
        if self._contacts is not None:
            self._contacts.prepare()

    def _cycle(self) -> int:
        """One cycle; a status of a session, or of a solver while the joints are open."""
        if self._contacts is not None and self._closing is None:
            return self._contacts.cycle()
        status: int = self._dynamic_cycle() if self._kernel is None else self._kernel(self._places)
        return status

    def _dynamic_cycle(self) -> int:
        """One cycle of the equations of motion."""
        run = self._run
        assert isinstance(run, DynamicRun)
        self._control.cycles += 1.0
        for index, hand in enumerate(self._hands):
            if hand is not None:
                self._take_target(index, hand._record)
        status = run.cycle()
        if status >= tables.STUCK and not self._has_failed:
            found = run.causes() or [("not finite", "")] * (status == tables.FAILED)
            self._events += [SessionEvent(self.cycles, *cause) for cause in found]
        self._has_failed = status >= tables.STUCK
        self._poses[:] = self._q[: self._poses.size]
        _tables.shift_reference(len(self._numbers), self._frames, self._origin, -1.0, self._poses)
        return status

    def _take_target(self, index: int, hand: tables.Hand) -> None:
        """target ← asked, if the operator has written it."""
        c, version = self._control, hand.version
        if version != hand.seen and version % 2.0 == 0.0:
            asked = hand.asked
            hand.seen = version
            hand.bad = float(not (np.abs(asked) < tables.FARTHEST).all())
            if hand.bad:
                self._ring[int(c.event_count) % tables.MOST_EVENTS] = self.cycles, tables.BAD_TARGET, index, 0.0
                c.event_count += 1.0
            else:
                hand.target = asked
                at = int(c.recorded)
                if self._recording is not None:
                    entries = self._recording._targets.reshape(-1, tables.Entry.size)
                    if at < len(entries):
                        entries[at] = [self.cycles, index, *asked]
                    c.recorded += 1.0

    # -- the start of the drag -----------------------------------------------------------------------------------------

    def _keep_start(self) -> None:
        """What :meth:`restore` returns to."""
        run = self._run
        known = run.accelerations, run.node_times
        kept = (self._q, self.coordinates, run.floats, run.active, run.bounds, self._goals, run.v, *known)
        self._start_time = run.time
        self._start = [(array, array.copy()) for array in kept]

    def restore(self) -> None:
        """Return bitwise to the start of the drag: the last pose in which a hand was added while there was no other."""
        with self._exclusive():
            values = [kept.copy() for _, kept in self._start]
            if self._recording is not None:
                self._recording.note("put_back", (values, self._start_time))
            self._put_back(values, self._start_time)

    def _put_back(self, values: list[FloatArray], time: float) -> None:
        for (array, _), kept in zip(self._start, values, strict=True):
            array[...] = kept
        self._control.time = time
        self._reset()
        for hand in self.hands:
            self._put(hand)

    def _reset(self) -> None:
        """Clear what earlier cycles stored, so that the next one depends on the pose alone."""
        self._has_failed = False
        if self._contacts is not None:
            self._contacts.reset()
        # no factor at hand, no singular value known; the longest sub-step allowed; steps of first order
        self._control.write(linearized=0.0, sigma=0.0, trust=1.0, probed=0.0, curved=0.0, mixes=0.0, walked=0.0)
        self._control.redundant = 0.0
        self._vectors[: self._noise.size] = self._noise

    def record(self) -> Record:
        """Record what the operator does from now on; ``record.replay(m)`` repeats it bitwise."""
        with self._exclusive():
            if self._recording is not None:
                raise SessionError("this session is recorded already; stop that record first")
            self._reset()
            self._control.widest = 0.0
            record = Record(self)
            self._table.record = record._targets
            self._table.record_size = record._targets.size // tables.Entry.size
            self._control.recorded = 0.0
            self._recording = record
            return record

    def _adopt(self, held: list[Any], floats: FloatArray) -> None:
        """Take over the hands of a record."""
        self._hand_floats[:] = floats
        for index, known in enumerate(held):
            self._hands[index] = None if known is None else Hand(self, self._hand_record(index), *known)

    def _hand_record(self, index: int) -> tables.Hand:
        return tables.Hand(self._hand_floats, index)

    def serve(self, rate_hz: Any = None) -> Servo:
        """Run cycles at a fixed rate [Hz] in a thread of their own; ``servo.stop()`` ends it.

        Meanwhile targets are set and forces read as usual.  A kinematic session runs outside of Python.
        ``servo.stats`` has step times, lateness and overruns.
        """
        with self._exclusive():
            if self._servo is not None:
                raise SessionError("this session is served already; stop that servo first")
            self._servo = Servo(self, self.rate if rate_hz is None else rate_hz)
            return self._servo

    # -- hands ---------------------------------------------------------------------------------------------------------

    @property
    def hands(self) -> tuple[Hand, ...]:
        """The hands that hold a body now."""
        return tuple(hand for hand in self._hands if hand is not None)

    @property
    def target(self) -> Any:
        """Raises an error: each hand has its own target."""
        raise SessionError("a session has no target; grasp a body, g = session.grasp(body, point), and set g.target")

    @target.setter
    def target(self, value: Any) -> None:
        self.target  # noqa: B018  # the same error

    def grasp(
        self,
        body: Any,
        point: Any = (0.0, 0.0, 0.0),
        *,
        pose: bool = False,
        stiffness: Any = None,
        damping: Any = None,
        hand: str | None = None,
    ) -> Hand:
        """Take hold of a body, by object or name, at a point in its axes [m]; its target is first where it is.

        pose: hold the orientation too, six rows instead of three.

        Kinematic: stiffness [N/m], 1 where none is given.  Where hands pull against each other or against the joints,
        the stiffer one is nearer to its target, and the force on it is stiffness times the distance.
        Dynamic: hand="constraint" makes the point follow its target as far as the joints leave it free; the force is
        that of inverse dynamics, in these directions; it has neither stiffness nor damping.
        "spring" has a stiffness and a damping [N s/m]; where none are given, they are those with which the mass of all
        bodies would swing at 30 rad/s, critically damped.
        Rotations have the stiffness and the damping times the square of the body's size.
        """
        kind = "pose" if check.flag(pose, "pose") else "point"
        return self._take(body, point, kind, (hand or self.hand, stiffness, damping))

    def push(
        self,
        body: Any,
        point: Any = (0.0, 0.0, 0.0),
        *,
        direction: Any = None,
        stiffness: Any = None,
        damping: Any = None,
    ) -> Hand:
        """Push a body at a point with a hand that never pulls: it acts where its target is beyond the face.

        The face is the plane through the point, fixed on the body.  direction: into the body, normal to the face, in
        body axes; from the point towards the centroid of the body's joint points where none is given.  The hand slides
        on the face without friction.  stiffness, damping: as of a spring, see :meth:`grasp`.
        """
        return self._take(body, point, "push", ("spring", stiffness, damping), direction)

    @property
    def mode(self) -> str:
        """Whether it is "kinematic" or "dynamic"."""
        return self._mode

    def _check_own(self, what: str, item: Any, name: str) -> None:
        """ModelError if a body, joint or coordinate is of another mechanism.

        Names are accepted, and so are items that were changed after the session began.
        """
        bodies = (item,) if hasattr(item, "owner") else getattr(item, "bodies", ())
        other = next((body.owner for body in bodies if body.owner is not self._owner), None)
        if other is not None:
            raise ModelError(
                f"{what} was given {item!r} of another mechanism ({other.name!r}); this session is of "
                f"{self._owner.name!r}: use its own, or the name {name!r}"
            )

    def _take(self, body: Any, point: Any, kind: str, spring: tuple[str, Any, Any], direction: Any = None) -> Hand:
        with self._exclusive():
            name = getattr(body, "name", body)
            what = f"the point grasped on {name!r}"
            if getattr(body, "is_ground", False) or name == "ground":
                raise ModelError("a hand was put on the ground, which does not move; grasp a movable body")
            if not isinstance(name, str) or name not in self._numbers:
                raise check.unknown(name, "movable body of this session", self._numbers)
            self._check_own("push" if kind == "push" else "grasp", body, name)
            number = self._numbers[name]
            local = np.array(check.vector(point, what))
            role, stiffness, damping = self._spring(name, *spring)
            self._check_idle(name, number, local, kind)
            if None not in self._hands:
                raise ModelError(f"there are {tables.MOST_HANDS} hands already; release one of them first")
            index = self._hands.index(None)
            record = self._hand_record(index)
            if self._recording is not None:
                self._recording.note("take", (name, tuple(local), kind, spring, direction))
            frame = self._frames.reshape(-1, 7)[number]
            normal = self._normal(name, number, local, direction) if kind == "push" else np.zeros(3)
            record.as_floats[: tables.Hand.size] = 0.0
            to_frame = euler.conjugate(frame[3:])
            square = self._size(number) ** 2
            record.write(
                body=number,
                local=euler.rotate(to_frame, local - frame[:3]),
                frame=to_frame,
                normal=euler.rotate(to_frame, normal),
                stiffness=stiffness,
                twist=stiffness * square,
                damping=damping,
                untwist=damping * square,
                role=tables.SPRINGS if role == "spring" else tables.HOLDS,
            )
            if not self.hands:
                self._keep_start()
            hand = Hand(self, record, name, local, kind)
            self._put(hand)
            record.kind = {"point": tables.POINT, "pose": tables.POSE, "push": tables.PUSH}[kind]
            self._control.probed = 0.0
            self._hands[index] = hand
            return hand

    def _spring(self, name: str, role: str, stiffness: Any, damping: Any) -> tuple[str, float, float]:
        """Role, stiffness and damping of a new hand, checked."""
        check.choice(role, "hand", HAND_KINDS)
        if self.mode == "kinematic":
            if damping is not None:
                raise ModelError(
                    f"the hand on {name!r} has damping, but no time passes in a kinematic session; omit it"
                )
            return role, check.positive(STIFFNESS if stiffness is None else stiffness, "stiffness"), 0.0
        mass = float(self._equations.masses[:, 0].sum())
        if role == "constraint":
            given = [word for word, value in (("stiffness", stiffness), ("damping", damping)) if value is not None]
            if given:
                raise ModelError(
                    f"the hand on {name!r} has {' and '.join(given)}, but in a dynamic session hand='constraint' "
                    f"follows its target exactly; omit {'them' if len(given) > 1 else 'it'}, or use hand='spring'"
                )
            return role, STIFFNESS, 0.0
        if not mass and (stiffness is None or damping is None):
            raise ModelError(f"give the hand on {name!r} stiffness= and damping=: no body has a mass to choose them by")
        k = FREQUENCY**2 * mass if stiffness is None else check.positive(stiffness, "stiffness")
        d = 2.0 * float(np.sqrt(k * mass)) if damping is None else check.positive(damping, "damping", zero=True)
        return role, k, d

    def _check_idle(self, name: str, number: int, local: FloatArray, kind: str) -> None:
        """ModelError if a hand would rotate a body about an axis without inertia."""
        for twist in self._idle.get(number, ()):
            frame = self._system.reference_frames[number]
            arm = euler.rotate(euler.conjugate(frame[3:]), local - frame[:3])
            moved = np.abs(twist[:3] + np.cross(twist[3:], arm)).max()
            if kind != "point" or moved > UNMOVED * self._system.judged_length:
                raise ModelError(
                    f"a hand on {name!r} would rotate it, but it has no inertia there (0 kg m²), and no joint holds "
                    "it; give inertia= to m.body, or grasp its centre of mass"
                )

    def _normal(self, name: str, number: int, local: FloatArray, direction: Any) -> FloatArray:
        if direction is not None:
            return np.array(check.direction(direction, f"the direction of the push on {name!r}"))
        inwards = self._system.centroids[number] - local
        length = float(np.linalg.norm(inwards))
        if not length > 0.0:
            raise ModelError(f"the push on {name!r} is at the centroid of its joint points; give direction=")
        return inwards / length

    def _size(self, number: int) -> float:
        """Radius of gyration of a body in the metric of the session [m]."""
        own = self._equations.metric[number]
        return float(np.sqrt(own[3:].max() / own[0]))

    def _put(self, hand: Hand) -> None:
        """Put the target of a hand where its body is now."""
        position, p = np.split(self.coordinates[self._numbers[hand.body]], [3])
        record = hand._record
        now = np.concatenate([position + euler.rotate(p, hand.local) - self._origin, p])
        record.write(now=now, target=now, asked=now, force=0.0, torque=0.0, seen=record.version, bad=0.0)
        record.write(impulse=0.0, pull=0.0, trend=0.0, known=0.0, redundant=0.0)

    def _release(self, hand: Hand | int) -> None:
        with self._exclusive():
            index = hand if isinstance(hand, int) else self._hands.index(hand)
            released = self._hands[index]
            assert released is not None
            if self._recording is not None:
                self._recording.note("release", (index,))
            released._record.kind = tables.FREE
            self._control.probed = 0.0
            self._hands[index] = None
            released._session = None

    # -- range ---------------------------------------------------------------------------------------------------------

    def range(self, of: Any, name: str | None = None) -> Range | tuple[Range, Range, Range]:
        """Range of a joint's coordinate from the current pose, explored along the free motions to both ends.

        of: a joint, its name, or a coordinate; name: which coordinate of a joint that has several.  Of a hand: the
        ranges of x, y and z [m] of the grasped point.  The session does not move.
        """
        with self._exclusive():
            if self._contacts is not None:
                _apart.refuse(self._drawing, "session.range")
            if isinstance(of, Hand):
                if of not in self._hands:
                    raise ModelError(
                        f"range was given {of!r}, which is not, or no longer, a hand of this session; use one of "
                        "session.hands"
                    )
                ends = [self._probe(of, axis) for axis in np.eye(3)]
                return ends[0], ends[1], ends[2]
            self._check_own("range", of, getattr(of, "joint", getattr(of, "name", "")))
            return self._probe(of, name)

    def _probe(self, of: Any, axis: Any) -> Range:
        key, equations, unit = probed(self._drawing, of, axis)
        own = equations.system
        known = self.state.angles
        angles = np.array([known.get(k, 0.0) for k in own.counted_angles])
        q = formulations.to_reference(own, self.coordinates, angles)
        floats = equations.problem.floats.copy()
        mine = {signal.name: self._run.floats[place] for place, signal in self._system.signals}
        for place, signal in own.signals:
            floats[place] = mine[signal.name]
        explorer = Explorer(equations, q, floats, key)
        low, high = explorer.extreme(-1.0), explorer.extreme(1.0)
        return Range(low.value, high.value, (low.reason, high.reason), unit)

    # -- cycles --------------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """One servo cycle: the mechanism follows the hands; returns a :class:`SessionStatus` as a number.

        While the joints of a session with closed=False are open, it is one step of the solver: MOVING, then IDLE once
        the verdict is met, or STUCK if another step would not reduce the residuals.
        """
        try:
            self._permits.pop()
        except IndexError:
            raise self._busy() from None
        try:
            if self._servo is not None:
                raise self._busy()
            status = self._cycle()
            closing = self._closing
            if closing is not None:
                return MOVING if status == RUNNING else closing.status()
            if self._system.has_contacts:
                if status >= tables.SATURATED:
                    self._note_contacts()
                elif status != tables.IDLE:
                    self._ended = ()
            return status
        finally:
            self._permits.append(None)

    def _note_contacts(self) -> None:
        """Events of the contacts that end within the step that failed, once."""
        if isinstance(self._run, DynamicRun):
            found = tuple(lost_contacts(self._system, self._q, self._run.failed_step, LONGEST))
        else:
            found = tuple(lost_contacts(self._system, self._q, self._step_floats))
        self._events += [SessionEvent(self.cycles, CONTACT_ENDS, name) for name in found if name not in self._ended]
        self._ended = found

    def drive(self, name: Any, value: Any) -> None:
        """Set the value of a driver's coordinate [m or rad]; the next cycles move there in sub-steps."""
        with self._exclusive():
            own = getattr(name, "name", name)
            if self.mode == "dynamic":
                raise ModelError(
                    f"driver {own!r} follows its function of time in a dynamic session; use mode='kinematic'"
                )
            drivers = [signal.name for _, signal in self._system.signals]
            if own not in drivers:
                raise check.unknown(own, "driver of this session", drivers)
            goal = check.number(value, f"the value of driver {own!r}")
            if self._recording is not None:
                self._recording.note("drive", (own, goal))
            self._goals[2 * drivers.index(own)] = goal

    _drive = drive  # Record.replay calls _take, _release and _drive

    @property
    def residual(self) -> float:
        """Largest residual of a joint in the last pose; lengths relative to the extent, angles in radians."""
        if self._closing is not None:
            return self._closing.residual
        if isinstance(self._run, DynamicRun):
            return self._run.residual
        return float(self._control.residual)

    @property
    def cycles(self) -> int:
        """Number of cycles made; while the joints are open, the solver steps that were accepted or refused."""
        return int(self._control.cycles) if self._closing is None else self._closing.iterations

    @property
    def time(self) -> float:
        """Time [s]; it passes in a dynamic session."""
        return float(self._run.time) if self._closing is None else self._closing.time

    @property
    def events(self) -> list[SessionEvent]:
        """Events so far, in order.  Of those since the last call, at most the last 256 are kept."""
        if self._closing is not None:
            return []
        count = int(self._control.event_count)
        for k in range(max(self._seen, count - tables.MOST_EVENTS), count):
            cycle, kind, number, _ = self._ring[k % tables.MOST_EVENTS].item()
            self._events.append(SessionEvent(int(cycle), EVENT_NAMES[int(kind)], self._event_name(kind, int(number))))
        self._seen = count
        if isinstance(self._run, DynamicRun):
            reached = [event for event in self._run.events if isinstance(event, Event)]
            limits = [SessionEvent(round(e.time * self.rate), f"limit {e.what}", e.limit) for e in reached]
            return sorted(limits + self._events, key=lambda event: event.cycle)
        return list(self._events)

    @property
    def touching(self) -> tuple[Touching, ...]:
        """Bodies that touch in the current pose, of those that must not overlap (:meth:`cardan.Mechanism.collide`)."""
        if self._contacts is None:
            return ()
        return self._contacts.touching(self.coordinates)

    def _note_touch(self, name: str) -> None:
        self._events.append(SessionEvent(self.cycles, PARTS_TOUCH, name))

    def _leave_limit(self, number: int) -> None:
        """A limit that does not hold any more."""
        run, c = self._run, self._control
        run.bounds["side"][number] = 0.0
        run.active[int(run.equations.stop_table["equation"][number])] = 0.0
        run.floats[int(run.equations.stop_table["place"][number])] = 0.0
        self._ring[int(c.event_count) % tables.MOST_EVENTS] = self.cycles, tables.LIMIT_LEFT, number, 0.0
        c.event_count += 1.0

    def _event_name(self, kind: float, number: int) -> str:
        if kind in (tables.LIMIT_REACHED, tables.LIMIT_LEFT):
            return self._equations.stops[number].name
        if kind == tables.BAD_TARGET:
            return self._system.names[int(self._hand_record(number).body)]
        return ""

    @property
    def coordinates(self) -> FloatArray:
        """r and p of every body [m, 1], as in a State, shape (bodies, 7).

        Once the joints are closed, an array that is updated in place; before, a copy.
        """
        return self._coordinates if self._closing is None else self._closing.state.coordinates

    @property
    def positions(self) -> FloatArray:
        """Positions of the bodies [m], shape (bodies, 3), updated in place."""
        return self.coordinates[:, :3]

    @property
    def quaternions(self) -> FloatArray:
        """Quaternions (w, x, y, z) of the bodies, shape (bodies, 4), updated in place."""
        return self.coordinates[:, 3:]

    @property
    def energy(self) -> float:
        """Kinetic energy, and potential energy of gravity, springs and bushings [J].

        NaN in a kinematic session, and while joints that were open at the start have no hands yet.
        """
        if self.mode == "kinematic" or self._closing is not None:
            return float("nan")
        e, bodies = self._equations, len(self._system.names)
        v = np.asarray(self._run.v).reshape(bodies, -1)
        r = self._q[: layout.POSE * bodies].reshape(bodies, layout.POSE)[:, :3] + self._origin
        found = 0.5 * float(np.sum(e.masses * v * v)) - float(e.masses[:, 0] @ (r @ e.gravity))
        found += joint_inertias.kinetic(e, self._run.time, self._q, v.ravel())
        return found + (0.0 if e.forces is None else float(e.forces.potential(self._q)))

    @property
    def state(self) -> State:
        """The current poses, and velocities in a dynamic session."""
        if self._closing is not None:
            return self._closing.state
        own = self._system
        angles = formulations.angles(own, self._q).copy() if own.counted_angles else None
        found = own.state(self.coordinates.copy(), angles, self._run.time)
        if self.mode == "kinematic":
            return found
        velocities, accelerations = rates.at_origins(own, self._q, self._run.v, self._run._last_acceleration())
        return found.with_rates(velocities, accelerations)

    # -- life ----------------------------------------------------------------------------------------------------------

    def _exclusive(self) -> _Exclusive:
        self._check_open()
        self._finish_closing()
        return _Exclusive(self)

    def _busy(self) -> SessionError:
        if self._is_closed:
            return SessionError("the session is closed; make another one with m.session(state)")
        return SessionError("another thread uses this session; use one session per thread, or stop its servo first")

    def _check_open(self) -> None:
        if self._is_closed:
            raise self._busy()

    def close(self) -> None:
        """End the session; its last state stays readable."""
        if not self._is_closed:
            if self._servo is not None:
                self._servo.stop()
            try:
                if self._recording is not None:
                    self._recording.stop()  # raises if it is full
            finally:
                with _Exclusive(self):
                    self._is_closed = True

    def __enter__(self) -> Session:
        self._check_open()
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise SessionError(
            f"{self!r} cannot be copied or pickled, and neither can its hands or a running record; {COPIED}"
        )

    def __repr__(self) -> str:
        return f"<Session ({self.mode}): {len(self._numbers)} bodies, {len(self.hands)} hands>"


class _Exclusive:
    """A block in which no other thread may use the session; its servo waits.

    The lock excludes the servo and other blocks; the permit also excludes cycles.  After the session is closed the
    permit is not returned, so that every later use is refused.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        self._servo = self._session._servo
        if self._servo is not None:
            self._servo.pause()
        try:
            if not self._session._lock.acquire(timeout=PAUSE if self._servo is not None else 0.0):
                raise self._session._busy()
            try:
                self._session._permits.pop()
            except IndexError:
                self._session._lock.release()
                raise self._session._busy() from None
        except SessionError:
            if self._servo is not None:
                self._servo.resume()
            raise

    def __exit__(self, *unused: Any) -> None:
        if not self._session._is_closed:
            self._session._permits.append(None)
        self._session._lock.release()
        if self._servo is not None:
            self._servo.resume()
