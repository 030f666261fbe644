"""Mechanism: the public face.  Each method is a thin call into the layers below."""

from __future__ import annotations

import copy as copying
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec

from cardan import joints
from cardan.analysis.assemble import AUTO, Method, assemble
from cardan.analysis.result import AssemblyResult
from cardan.analysis.stepper import Stepper
from cardan.coordinates.formulations import Formulation
from cardan.diagnosis.freedom import Diagnosis, diagnose
from cardan.errors import ModelError
from cardan.joints import Joint, JointKind
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.parts import Body, Frame, Point
from cardan.system.state import State
from cardan.system.system import System

P = ParamSpec("P")

GROUND = "ground"


def _adds(kind: JointKind[P]) -> Callable[Concatenate[Mechanism, str, P], Joint]:
    """A method that adds a joint of that kind: ``m.kind(name, a, b, …)``."""

    def method(self: Mechanism, name: str, /, *args: P.args, **options: P.kwargs) -> Joint:
        return self._add(kind, name, args, options)

    method.__name__ = kind.name
    method.__qualname__ = f"Mechanism.{kind.name}"
    method.__doc__ = kind.build.__doc__
    built = inspect.signature(kind.build)
    first = [inspect.Parameter(word, inspect.Parameter.POSITIONAL_ONLY) for word in ("self", "name")]
    options = list(built.parameters.values())
    method.__signature__ = inspect.Signature([*first, *options], return_annotation=Joint)  # type: ignore[attr-defined]
    return method


class Mechanism:
    """Bodies, and the joints between them.  Bodies and joints share one set of names.

    ``gravity`` [m/s²] is used by the dynamics.
    """

    def __init__(self, name: str = "mechanism", *, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        self._name = check.name(name, "the mechanism")
        self._gravity = check.vector(gravity, f"the gravity of mechanism {name!r}")
        self._ground = Body(self, GROUND, mass=0.0, is_ground=True)
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, Joint] = {}
        self._system: System | None = None
        self._serials = 0

    def next_serial(self) -> int:
        """A number for a body or a turn, never given twice: packing knows them by it."""
        self._serials += 1
        return self._serials - 1

    # -- building ------------------------------------------------------------------------------------------------------

    def body(
        self,
        name: str,
        *,
        position: Any = (0.0, 0.0, 0.0),
        orientation: Any = (1.0, 0.0, 0.0, 0.0),
        mass: Any = 1.0,
        inertia: Any = None,
        center: Any = (0.0, 0.0, 0.0),
    ) -> Body:
        """Add a body with its authored pose: position [m], orientation (w, x, y, z); see :class:`cardan.Body`."""
        name = self._new_name(name, "a body")
        made = Body(
            self,
            name,
            position=position,
            orientation=orientation,
            mass=mass,
            inertia=inertia,
            center=center,
            serial=self.next_serial(),
        )
        self._bodies[name] = made
        self.touch()
        return made

    fixed = _adds(joints.fixed)
    revolute = _adds(joints.revolute)
    prismatic = _adds(joints.prismatic)
    cylindrical = _adds(joints.cylindrical)
    spherical = _adds(joints.spherical)
    universal = _adds(joints.universal)
    planar = _adds(joints.planar)
    distance = _adds(joints.distance)
    angle = _adds(joints.angle)
    parallel = _adds(joints.parallel)
    perpendicular = _adds(joints.perpendicular)
    point_on_line = _adds(joints.point_on_line)
    point_in_plane = _adds(joints.point_in_plane)

    def _add(self, kind: JointKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Joint:
        name = self._new_name(name, f"a {kind.name} joint")
        what = f"{kind.name} {name!r}"
        given = list(args[:2])
        given += [options[key] for key in ("a", "b") if key in options]
        if len(given) == 2:
            self._check_ends(what, kind, given[0], given[1])
        try:
            uses = tuple(kind.build(*args, **options))
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None
        except TypeError as error:
            raise ModelError(f"{what}: {error}; see help(Mechanism.{kind.name})") from None
        named = {key: value for key, value in options.items() if key not in ("a", "b")}
        parameters = (*zip(kind.options, args[2:], strict=False), *named.items())
        made = Joint(name, kind, given[0], given[1], tuple((key, _plain(value)) for key, value in parameters), uses)
        self._joints[name] = made
        self.touch()
        return made

    def _check_ends(self, what: str, kind: JointKind[Any], a: Any, b: Any) -> None:
        for end, frame_only in ((a, kind.frames_only[0]), (b, kind.frames_only[1])):
            valid = "a frame (body.frame(…))" if frame_only else "a point or frame (body.point(…), body.frame(…))"
            if not isinstance(end, Frame if frame_only else Frame | Point):
                raise ModelError(f"{what} was given {end!r}; it must be {valid}")
            self._check_body(what, end.body)
        if a.body is b.body:
            raise ModelError(f"{what} connects body {a.body.name!r} to itself; a joint needs two different bodies")

    def _check_body(self, what: str, body: Body) -> None:
        if body is self._ground or self._bodies.get(body.name) is body:
            return
        if body.owner is not self:
            raise ModelError(
                f"{what} was given a frame or point on body {body.name!r} of another mechanism "
                f"({getattr(body.owner, 'name', '?')!r}); use the {body.name!r} of {self.name!r}, m[{body.name!r}]"
            )
        raise ModelError(f"{what} was given a frame or point on body {body.name!r}, which was removed")

    def _new_name(self, given: Any, what: str) -> str:
        name = check.name(given, what)
        if name == GROUND:
            raise ModelError(f"{what} cannot be named {name!r}: that is the fixed body")
        if name in self._bodies or name in self._joints:
            taken = "body" if name in self._bodies else "joint"
            raise ModelError(f"{what} cannot be named {name!r}: there is a {taken} of that name; choose another")
        return name

    def remove(self, name: str | Body | Joint, *, joints: bool = False) -> None:
        """Remove a joint, or a body; with ``joints`` a body's joints go too, otherwise it must have none."""
        if not isinstance(name, str | Body | Joint):
            raise ModelError(f"remove was given {name!r}; it must be a body, a joint, or the name of one")
        key = name if isinstance(name, str) else name.name
        mine = self._ground if key == GROUND else self._joints.get(key, self._bodies.get(key))
        if not isinstance(name, str) and mine is not name:
            raise ModelError(f"{name!r} is of another mechanism, not of {self.name!r}; remove it there, or by name")
        if key in self._joints:
            del self._joints[key]
        elif key in self._bodies:
            attached = [j.name for j in self._joints.values() if self._bodies[key] in (j.a.body, j.b.body)]
            if attached and not joints:
                raise ModelError(
                    f"body {key!r} has the joints {', '.join(map(repr, attached))}; remove them first, or pass "
                    "joints=True"
                )
            for joint in attached:
                del self._joints[joint]
            del self._bodies[key]
        elif key == GROUND:
            raise ModelError("the ground cannot be removed")
        else:
            raise check.unknown(key, "body or joint", [*self._bodies, *self._joints])
        self.touch()

    def touch(self) -> None:
        """Forget the packed system: it is made anew when next needed.  Every edit calls this."""
        self._system = None

    # -- looking -------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name; a copy may have another."""
        return self._name

    @property
    def ground(self) -> Body:
        """The fixed body; its axes are the world's."""
        return self._ground

    @property
    def gravity(self) -> Triple:
        """Acceleration of gravity [m/s²] in world."""
        return self._gravity

    @gravity.setter
    def gravity(self, value: Any) -> None:
        self._gravity = check.vector(value, f"the gravity of mechanism {self.name!r}")

    @property
    def bodies(self) -> Mapping[str, Body]:
        """The movable bodies by name, in the order they were made."""
        return dict(self._bodies)

    @property
    def joints(self) -> Mapping[str, Joint]:
        """The joints by name, in the order they were made."""
        return dict(self._joints)

    def __getitem__(self, name: str) -> Any:
        found = (self._joints.get(name) or self._bodies.get(name)) if isinstance(name, str) else None
        if found is None:
            if name == GROUND:
                return self._ground
            raise check.unknown(name, "body or joint", [*self._bodies, *self._joints])
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._joints or name in self._bodies or name == GROUND

    def __iter__(self) -> Iterator[str]:
        yield from self._bodies
        yield from self._joints

    def __len__(self) -> int:
        return len(self._bodies) + len(self._joints)

    @property
    def system(self) -> System:
        """The packed, frozen system; made on demand."""
        if self._system is None:
            if not self._bodies:
                raise ModelError(f"mechanism {self.name!r} has no bodies; add one with m.body(name)")
            self._system = System(list(self._bodies.values()), [(j.name, j.uses) for j in self._joints.values()])
        return self._system

    @property
    def state(self) -> State:
        """The poses as authored."""
        return self.system.state()

    # -- solving -------------------------------------------------------------------------------------------------------

    def assemble(
        self,
        start: State | Mapping[Any, Any] | None = None,
        *,
        time: float | None = None,
        method: Method = AUTO,
        formulation: Formulation = "manifold",
        tolerance: float = 1e-12,
        max_iterations: int | None = None,
        max_seconds: float | None = None,
        restarts: int | None = None,
        seed: int = 0,
    ) -> AssemblyResult:
        """Find poses that satisfy every joint, from the authored poses or from ``start``.

        start: a State, or ``{body: (position, quaternion)}`` for some bodies.
        method: ``"auto"`` (Levenberg–Marquardt with retries and restarts), ``"levenberg_marquardt"``, ``"newton"``,
        ``"gradient"``, ``"hybrid"``.  formulation: ``"manifold"`` or ``"euler_parameters"``.
        tolerance: on every residual, lengths relative to the mechanism's extent, angles in radians.
        max_iterations: per attempt.  max_seconds: for the whole call.  restarts: attempts after the first (auto only).
        """
        return assemble(
            self.system,
            start,
            at_time=time,
            method=method,
            formulation=formulation,
            tolerance=tolerance,
            max_iterations=max_iterations,
            max_seconds=max_seconds,
            restarts=restarts,
            seed=seed,
        )

    def stepper(
        self,
        start: State | Mapping[Any, Any] | None = None,
        *,
        time: float | None = None,
        formulation: Formulation = "manifold",
        tolerance: float = 1e-12,
    ) -> Stepper:
        """A solver that makes one step at a time, each some microseconds: ``while not s.step(): …``."""
        return Stepper(self.system, start, time, formulation, tolerance)

    def diagnose(self, state: State | None = None) -> Diagnosis:
        """Degrees of freedom, redundancy and residuals in a state (the authored one where none is given)."""
        if state is None:
            state = self.system.state()
        elif not isinstance(state, State):
            raise ModelError(f"diagnose was given {state!r}; it must be a State, such as result.state")
        return diagnose(self.system, state)

    # -- values --------------------------------------------------------------------------------------------------------

    def copy(self, name: str | None = None) -> Mechanism:
        """An independent copy."""
        made = copying.deepcopy(self)
        if name is not None:
            made._name = check.name(name, "the mechanism")
        return made

    def __copy__(self) -> Mechanism:
        return self.copy()

    def description(self) -> tuple[Any, ...]:
        """All that defines the mechanism, as plain values."""
        return (
            self.name,
            self._gravity,
            tuple(body.description() for body in self._bodies.values()),
            tuple(joint.description() for joint in self._joints.values()),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return self.description() == other.description()

    __hash__ = None  # type: ignore[assignment]  # it can be edited

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_system": None}

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: {len(self._bodies)} bodies, {len(self._joints)} joints>"


def _plain(value: Any) -> Any:
    """A parameter as a plain value: NumPy scalars become floats, so that descriptions compare and print alike."""
    return value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
