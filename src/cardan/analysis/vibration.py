"""Small motions about an equilibrium: ẏ = u and u̇ = −K y − D u, their frequencies, damping ratios and modes.

y are displacements along the free motions N, with NᵀM N = 1.  With rate rows there are fewer velocities u than
displacements y, and ẏ = NᵀM N_v u.  K and D: :mod:`cardan.dynamics.static_forces`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cardan.analysis.equilibrium import INDIFFERENT, assembled, released
from cardan.calls import explains
from cardan.coordinates.rates import at_origins
from cardan.dynamics.build import equations_of
from cardan.dynamics.joint_inertias import mass_times
from cardan.dynamics.massless import examine
from cardan.dynamics.static_forces import AtRest
from cardan.errors import ModelError
from cardan.system.drawing import Drawing
from cardan.system.saving import Saved
from cardan.system.state import FloatArray, State

AT_REST: Final = 1e-9  # [m/s, rad/s] of a body: a larger velocity is one
IN_EQUILIBRIUM: Final = 1e-6  # of the loads: a larger force along the free motions is left
CORNER: Final = 1e-3  # of the largest slope: a larger jump is a corner
LEAST_DAMPING: Final = 1e-6  # [s], times the loads: a jump is compared with no less
REAL: Final = 1e-7  # of the largest eigenvalue: smaller parts are rounding, whose root is taken at double zeros

ComplexArray = NDArray[np.complex128]


@explains()
@dataclass(frozen=True, slots=True, eq=False)
class Linearization(Saved):
    """Small motions about a state at rest: ż = A z, z = (y, u).

    ``A`` [1, 1/s, 1/s²], shape (n, n).  ``basis``, shape (displacements, bodies, 6): what a unit of each y is, δr of
    the body origins in world [m] and δθ in body axes [rad].  ``eigenvalues`` [1/s]: of A, by size.
    Of every oscillation, by its frequency: ``frequencies`` [Hz], |Im λ|/2π.  ``damping``: ratio −Re λ/|λ|.  ``modes``,
    shape (modes, bodies, 6), complex: amplitudes of the bodies as in ``basis``, the largest (lengths relative to the
    extent) is 1.
    ``stable``: False if an eigenvalue has a positive real part, None if a displacement meets no force, else True.
    ``notes``: what is assumed about masses.  Idle rotations, which have neither inertia nor torque, are left out of
    all but ``stable``.
    """

    state: State
    A: FloatArray
    basis: FloatArray
    eigenvalues: ComplexArray
    frequencies: FloatArray
    damping: FloatArray
    modes: ComplexArray
    stable: bool | None
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """A table of the oscillations, and what else there is."""
        names = self.state.names
        lines = ["frequency [Hz]  damping ratio  moves most"]
        for f, ratio, mode in zip(self.frequencies, self.damping, self.modes, strict=True):
            largest = names[int(np.abs(mode).max(axis=1).argmax())]
            lines.append(f"{f:14.6g}  {ratio:13.6g}  {largest}")
        rest = [value.real for value in self.eigenvalues if value.imag == 0.0]
        rigid = sum(value == 0.0 for value in rest)
        lines += [f"eigenvalue {value:.6g} 1/s, without oscillation" for value in rest if value != 0.0]
        lines += [f"{rigid} eigenvalues are zero: rigid motions"] if rigid else []
        lines.append({True: "stable", False: "unstable", None: "indifferent"}[self.stable])
        return "\n".join([*lines, *[f"note: {note}" for note in self.notes]])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linearization) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # it has arrays

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; complex numbers as pairs of real and imaginary part."""
        return {
            "frequencies": self.frequencies.tolist(),
            "damping": self.damping.tolist(),
            "eigenvalues": [[value.real, value.imag] for value in self.eigenvalues.tolist()],
            "A": self.A.tolist(),
            "stable": self.stable,
            "notes": list(self.notes),
        }


def linearize(drawing: Drawing, start: Any, tolerance: float) -> Linearization:
    """See :meth:`cardan.Mechanism.linearize`."""
    system, (equations, notes) = drawing.system, equations_of(drawing)
    velocities = getattr(start, "velocities", None)
    if velocities is not None and not np.abs(velocities).max(initial=0.0) <= AT_REST:
        k = int(np.abs(velocities).max(axis=1).argmax())
        raise ModelError(
            f"linearize needs a state at rest, but body {start.names[k]!r} has the velocity {velocities[k].tolist()}; "
            "pass m.equilibrium(state).state"
        )
    found = assembled(system, start, tolerance)
    if not found.ok:
        raise ModelError(f"linearize needs an assembled state; {found.text()}")
    rest = released(equations, found.state, start)
    if rest.holding:
        names = ", ".join(map(repr, rest.holding))
        raise ModelError(f"the limits {names} are reached: the motion is not linear there; remove them, or move away")
    idle = examine(rest)
    free, poses = (rest.without(idle.basis, rest.free_motions(with_rows)) for with_rows in (True, False))
    if rest.is_singular(poses):
        raise ModelError(
            "the pose is singular: not all of its free motions can be continued, and the motion is not linear there; "
            "move the mechanism to another pose"
        )
    K = rest.stiffness(free, poses)
    left, load = float(np.linalg.norm(rest.force(free))), rest.load() + float(np.abs(K).max(initial=0.0))
    if left > IN_EQUILIBRIUM * load:
        raise ModelError(
            f"the state is not an equilibrium: forces along the free motions are {left / load:.2g} of the loads; pass "
            "m.equilibrium(state).state"
        )
    _check_smooth("coordinates", rest.corner(free, poses), load)
    D, corner = rest.damping(free)
    _check_smooth("rates", corner, max(float(np.abs(D).max(initial=0.0)), LEAST_DAMPING * load))
    left_of, sizes, right_of = np.linalg.svd(K, full_matrices=False)
    is_stiff = sizes > INDIFFERENT * load
    K = (left_of[:, is_stiff] * sizes[is_stiff]) @ right_of[
        is_stiff
    ]  # without the stiffness of rigid motions: rounding
    roots, bases = zip(*[_mass_basis(rest, motions) for motions in (free, poses)], strict=True)
    y, u = poses.shape[1], free.shape[1]
    A = np.zeros((y + u, y + u))
    A[:y, y:] = bases[1].T @ mass_times(equations, rest.q, bases[0])
    A[y:, :y] = -np.linalg.solve(roots[0].T, np.linalg.solve(roots[1].T, K.T).T)
    A[y:, y:] = -np.linalg.solve(roots[0].T, np.linalg.solve(roots[0].T, D.T).T)
    none = np.zeros_like(rest.v)
    motions = [at_origins(equations.system, rest.q, motion, none)[0] for motion in bases[1].T]
    basis = np.array(motions).reshape(y, len(system.names), 6)
    meets_force = bool(is_stiff.all()) and y == u and not idle.basis.size
    modes = with_modes(found.state, A, basis, system.judged_length, meets_force)
    return replace(modes, notes=(*notes, *idle.notes))


def _mass_basis(rest: AtRest, free: FloatArray) -> tuple[FloatArray, FloatArray]:
    """T of :meth:`AtRest.mass_root`, and N T⁻¹."""
    root = rest.mass_root(free)
    return root, np.asarray(np.linalg.solve(root.T, free.T).T, dtype=np.float64)


def _check_smooth(of: str, corner: float, unit: float) -> None:
    """ModelError if the slope of a force jumps."""
    if corner > CORNER * unit:
        raise ModelError(
            f"the forces are not smooth functions of the {of} in this state: a slope jumps by {corner / unit:.2g} of "
            "the largest; look at functions of loads that jump or have a corner there"
        )


def with_modes(state: State, A: FloatArray, basis: FloatArray, length: float, is_stiff: bool) -> Linearization:
    """The linearization of ż = A z.  is_stiff: no displacement is without stiffness."""
    found, vectors = np.linalg.eig(A)
    values: ComplexArray = found.astype(np.complex128)
    zero = REAL * float(np.abs(values).max(initial=0.0))
    values[np.abs(values) <= zero] = 0.0
    order = np.argsort(np.abs(values), kind="stable")
    values, vectors = values[order], vectors[:, order]
    is_wave = values.imag > zero
    waves = values[is_wave]
    by_frequency = np.argsort(waves.imag, kind="stable")
    waves = waves[by_frequency]
    shapes = vectors[: len(basis), is_wave][:, by_frequency].T.astype(complex)
    modes = np.einsum("my,ybi->mbi", shapes, basis)
    if len(modes):
        scaled = (modes / np.array([length] * 3 + [1.0] * 3)).reshape(len(modes), -1)
        largest = scaled[np.arange(len(modes)), np.abs(scaled).argmax(axis=1)]
        modes = modes / np.where(np.abs(largest) > 0.0, largest, 1.0)[:, None, None]  # deformation alone moves no body
    is_growing = bool((values.real > zero).any())
    stable = False if is_growing else True if is_stiff else None
    ratios = 0.0 - waves.real / np.abs(waves)  # no −0 of a wave without damping
    return Linearization(state, A, basis, values, waves.imag / (2.0 * np.pi), ratios, modes, stable)
