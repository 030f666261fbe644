"""The options of a simulation, as one record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict

from cardan.analysis.options import known_options
from cardan.calls import explains
from cardan.coordinates import verdict
from cardan.dynamics.integrate import STABILIZATIONS, TABLEAUS
from cardan.errors import ModelError
from cardan.system import check

METHODS: Final = ("adams", *TABLEAUS, "generalized_alpha")
CONTACTS: Final = ("auto", "events", "steps")
IMPACTS: Final = ("together", "in_turn")


class StudyArguments(TypedDict, total=False):
    """The fields of :class:`SimulationOptions` as keyword arguments of studies, which have some of their own."""

    step: float | None
    rtol: float | None
    method: str
    max_step: float | None
    stabilization: str
    gain: float | None
    contacts: str
    impacts: str


class RunArguments(StudyArguments, total=False):
    """The fields of :class:`SimulationOptions` as keyword arguments, without the progress."""

    times: Iterable[float] | None
    max_seconds: float | None
    tolerance: float


class SimulationArguments(RunArguments, total=False):
    """The fields of :class:`SimulationOptions` as keyword arguments."""

    progress: Callable[[float], None] | None


@explains(constructor=True)
@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """Options of a simulation.

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
    tolerance: of the assembly at the start, as in :class:`cardan.AssemblyOptions`.
    contacts: how contacts open and close.  "events" (and "auto") finds the time of every hit of contacts of faces;
    "steps" takes constant steps, of first order, for bodies that collide, with all their contacts at once.
    impacts: hits at one time are solved "together", as one problem; or "in_turn", one after another, at limits with
    restitution and at contacts without friction.
    """

    step: float | None = None
    rtol: float | None = None
    times: Iterable[float] | None = None
    method: str = "adams"
    max_step: float | None = None
    max_seconds: float | None = None
    progress: Callable[[float], None] | None = None
    stabilization: str = "projection"
    gain: float | None = None
    tolerance: float = verdict.TOLERANCE
    contacts: str = "auto"
    impacts: str = "together"

    def __post_init__(self) -> None:
        """Check every field, and whether they fit together; convert numbers to float."""
        if self.method not in METHODS:
            raise check.unknown(self.method, "method", METHODS)
        if self.step is not None and self.rtol is not None:
            raise ModelError(
                f"step is {self.step!r} and rtol is {self.rtol!r}; give one of them: a constant step, or a tolerance"
            )
        if self.method != "adams" and self.step is None:
            raise ModelError(
                f"method {self.method!r} needs a constant step; give step=, or use method='adams' for rtol"
            )
        if self.progress is not None and not callable(self.progress):
            raise ModelError(f"progress is {self.progress!r}; it must be a function of the fraction done, from 0 to 1")
        if self.contacts not in CONTACTS:
            raise check.unknown(self.contacts, "contacts", CONTACTS)
        if self.impacts not in IMPACTS:
            raise check.unknown(self.impacts, "impacts", IMPACTS)
        self._check_stabilization()
        checked: dict[str, Any] = {"tolerance": verdict.checked_tolerance(self.tolerance)}
        for name in ("step", "rtol", "max_step", "max_seconds", "gain"):
            if (value := getattr(self, name)) is not None:
                checked[name] = check.positive(value, name)
        if isinstance(self.times, Iterator):
            checked["times"] = list(self.times)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _check_stabilization(self) -> None:
        word = self.stabilization
        if word not in STABILIZATIONS:
            raise check.unknown(word, "stabilization", STABILIZATIONS)
        if word != "projection" and self.method == "generalized_alpha":
            raise ModelError(f"stabilization={word!r} is for explicit methods; generalized_alpha solves for poses")
        if word == "baumgarte" and self.step is None and self.gain is None:
            raise ModelError("stabilization='baumgarte' with variable steps needs gain= [1/s]; give it, or step=")
        if self.gain is not None and word != "baumgarte":
            raise ModelError(f"gain is {self.gain!r}, but stabilization is {word!r}; a gain belongs to 'baumgarte'")


_DEFAULT: Final = SimulationOptions()


def simulation_options(options: SimulationOptions | None, changes: StudyArguments) -> SimulationOptions:
    """The given options, or the default ones, with some fields changed."""
    known: SimulationOptions = known_options(options, changes, _DEFAULT, "option of a simulation")
    return replace(known, **changes) if changes else known
