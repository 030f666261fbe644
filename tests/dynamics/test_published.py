"""Simulations against figures that others published and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ellipj, ellipk

import cardan as cd
from cardan import examples
from gallery.checks import without_drivers
from mechanisms import product, quaternion, rotation, rsur

X, Y, Z = np.eye(3)
CLOSED = 1e-12  # relative to the extent, rad


def is_done(simulation):
    assert simulation.ok, simulation.text()
    assert simulation.drift.max() <= CLOSED
    return simulation


# --- spatial four-bar -------------------------------------------------------------------------------------------------


def rsur_with_masses():
    """Rods of 1 kg, from rest; inertia of a thin rod, .001 kg m² about its axis."""
    m = rsur().build().mechanism
    coupler = np.linalg.norm(m.joints["C"].ends[0].origin)
    for name, length in (("crank", 1.0), ("coupler", coupler), ("rocker", 2.0)):
        m[name].mass, m[name].center = 1.0, (length / 2, 0.0, 0.0)
        m[name].inertia = np.diag([0.001, length**2 / 12, length**2 / 12])
    return m


CRANK_ANGLE = -1.01551837352  # [rad] change in 1 s; other programs agree to their 8 digits


@pytest.mark.parametrize("options, bar", [({"step": 1e-3}, 1e-9), ({"rtol": 1e-6}, 1e-6)], ids=["1 ms", "rtol"])
def test_a_spatial_four_bar_from_rest_agrees_with_other_programs(options, bar):
    m = rsur_with_masses()
    found = is_done(m.simulate(1.0, **options))
    angle = found.coordinate(m["A"])
    assert angle[-1] - angle[0] == pytest.approx(CRANK_ANGLE, abs=bar)


# --- problems A01, A02 and A04 of [IFToMM2016] ------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"step": 1e-3}, {"rtol": 1e-10}], ids=["1 ms", "rtol"])
def test_a_simple_pendulum_follows_elliptic_functions(options):
    """A point mass of 1 kg at 1 m, from the horizontal: θ = 2 asin(k sn(K − √g t)) with k² = ½."""
    m = cd.Mechanism(gravity=(0.0, -9.81, 0.0))
    bob = m.body("bob", position=(-1.0, 0.0, 0.0), mass=1.0, inertia=1e-11 * np.eye(3))
    m.revolute("A", m.ground.frame(z=Z), bob.frame((1.0, 0.0, 0.0), z=Z))
    found = is_done(m.simulate(10.0, **options))
    sn, *_ = ellipj(ellipk(0.5) - np.sqrt(9.81) * found.times, 0.5)
    theta = 2 * np.arcsin(np.sqrt(0.5) * sn)
    exact = np.column_stack([-np.sin(theta), -np.cos(theta), 0 * theta])
    assert exact[-1, :2] == pytest.approx([-0.27508746, -0.96141921], abs=1e-8)  # published
    assert np.abs(found.positions("bob") - exact).max() <= 1e-8


def double_four_bar():
    """Three rods on the ground and two couplers, each of 1 m and 1 kg; the ends of the couplers move at 1 m/s."""
    m = cd.Mechanism("double four-bar", gravity=(0.0, -9.81, 0.0))
    rod = {"mass": 1.0, "center": (0.5, 0.0, 0.0), "inertia": np.diag([0.001, 1 / 12, 1 / 12])}
    upright = quaternion(rotation(Z, np.pi / 2))
    rods = [m.body(f"rod {k}", position=(k, 0, 0), orientation=upright, **rod) for k in range(3)]
    couplers = [m.body(f"coupler {k}", position=(k, 1, 0), **rod) for k in range(2)]
    for k in range(3):
        m.revolute(f"A{k}", m.ground.frame((k, 0, 0), z=Z), rods[k].frame(z=Z))
    for k in range(2):
        m.revolute(f"B{k}", rods[k].frame((1, 0, 0), z=Z), couplers[k].frame(z=Z))
        m.revolute(f"C{k}", rods[k + 1].frame((1, 0, 0), z=Z), couplers[k].frame((1, 0, 0), z=Z))
    velocities = np.zeros((5, 6))
    velocities[:3, 5] = -1.0
    velocities[3:, 0] = 1.0
    return m, m.state.with_rates(velocities)


@pytest.mark.parametrize("options", [{"step": 1e-3}, {"rtol": 1e-10}], ids=["1 ms", "rtol"])
def test_double_four_bar_passes_its_singular_pose(options):
    """Each time all rods lie in one line the linkage has three degrees of freedom; it must not leave the parallelogram.

    The rods have one angle φ, and the couplers do not turn: 3 φ̈ = −3.5 g cos φ.
    """
    m, state = double_four_bar()
    found = is_done(m.simulate(10.0, state, **options))
    end = found.states[-1]["rod 0"].point((1, 0, 0))
    assert end[:2] == pytest.approx([0.32845811154, 0.94451853818], abs=1e-8)


@pytest.mark.parametrize("rtol", [1e-5, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8, 3e-9, 1e-9, 1e-10, 1e-11])
def test_runs_by_tolerance_go_round_singular_poses(rtol):
    """The double four-bar of [IFToMM2016] passes a singular pose twice in each turn.

    Steps that end very near to it do not meet the tolerance, and are replaced by others.  Their number is that of a
    method of order five.
    """
    m, state = double_four_bar()
    found = is_done(m.simulate(10.0, state, rtol=rtol))
    end = found.states[-1]["rod 0"].point((1, 0, 0))
    assert np.abs(end[:2] - [0.32845811154, 0.94451853818]).max() <= 50 * rtol
    energy = found.energy
    assert np.abs(energy.total - energy.total[0]).max() <= 2 * rtol * energy.kinetic.max()
    assert found.steps < 80 * rtol ** (-1 / 6)


@pytest.mark.parametrize("options", [{"rtol": 1e-14}, {"step": 1e-3, "method": "dopri5"}], ids=str)
def test_a_run_that_cannot_pass_a_singular_pose_ends_by_name(options):
    """Where rounding over σ³ exceeds the tolerance; they must not go on in ever smaller steps."""
    m, state = double_four_bar()
    found = m.simulate(10.0, state, **options, max_seconds=60.0)
    energy = found.energy
    assert np.abs(energy.total - energy.total[0]).max() <= 1e-11 * energy.kinetic.max()
    assert not found.ok and "singular pose, where the reactions of 'A1'" in found.reason, found.text()
    assert found.steps < 30_000


def test_bricard_keeps_its_energy():
    """Rods of 1 m and 1 kg with a square section of .1 m, over 10 s."""
    m = without_drivers(examples.REGISTRY["bricard"].build())
    for body in m.bodies.values():
        body.mass, body.center = 1.0, (0.5, 0.0, 0.0)
        body.inertia = np.diag([0.01 / 6, 1.01 / 12, 1.01 / 12])
    energy = is_done(m.simulate(10.0, step=1e-3)).energy
    assert np.abs(energy.total - energy.total[0]).max() <= 1e-8 * energy.kinetic.max()


# --- rigid bodies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"step": 1e-4}, {"rtol": 1e-8}], ids=["0.1 ms", "rtol"])
def test_a_heavy_top_agrees_with_exudyn(options):
    """The quaternion at .2 s as Exudyn's heavyTop gives it: 15 kg, 1 m from its pivot, spinning at 150 rad/s."""
    m = cd.Mechanism()
    top = m.body("top", center=(0, 1, 0), mass=15.0, inertia=np.diag([0.234375, 0.46875, 0.234375]))
    m.spherical("pivot", m.ground.point(), top.point())
    found = is_done(m.simulate(0.2, m.state.with_rates(np.array([[0, 0, 0, 0, 150, -4.61538]])), **options))
    p, published = found.quaternions(top)[-1], np.array([-0.70827915, 0.43878109, 0.54572840, 0.08939975])
    assert np.abs(p * np.sign(p @ published) - published).max() <= 1e-7


def free_rotation(moments, momentum, modulus_at, times):
    """ω in principal axes and quaternion of a free body at times, with its angular momentum along z of the world.

    moments I₁ < I₂ < I₃; 2T is chosen between L²/I₃ and L²/I₂ by modulus_at in (0, 1).  ω₂ = 0 at t = 0.
    ω = (a cn τ, b sn τ, c dn τ); the Euler angles ZXZ (φ, θ, ψ) have L (sin θ sin ψ, sin θ cos ψ, cos θ) = I ω and
    φ̇ = L (I₁ω₁² + I₂ω₂²)/(I₁²ω₁² + I₂²ω₂²).
    """
    (I_1, I_2, I_3), L = moments, momentum
    twice_T = L**2 / I_3 + modulus_at * (L**2 / I_2 - L**2 / I_3)
    high, low = twice_T * I_3 - L**2, L**2 - twice_T * I_1
    a, b = np.sqrt(high / (I_1 * (I_3 - I_1))), np.sqrt(high / (I_2 * (I_3 - I_2)))
    c = np.sqrt(low / (I_3 * (I_3 - I_1)))
    rate = np.sqrt((I_3 - I_2) * low / (I_1 * I_2 * I_3))
    m = (I_2 - I_1) * high / ((I_3 - I_2) * low)

    def omega(t):
        sn, cn, dn, _ = ellipj(rate * t, m)
        return np.array([a * cn, b * sn, c * dn])

    def precession(t):
        w = omega(t)
        return L * (I_1 * w[0] ** 2 + I_2 * w[1] ** 2) / ((I_1 * w[0]) ** 2 + (I_2 * w[1]) ** 2)

    period = 2 * ellipk(m) / rate  # of the precession's rate
    each = quad(precession, 0.0, period, epsabs=1e-13, epsrel=1e-13, limit=200)[0]
    poses = []
    for t in times:
        whole = np.floor(t / period)
        rest = quad(precession, 0.0, t - whole * period, epsabs=1e-13, epsrel=1e-13, limit=200)[0]
        l_x, l_y, l_z = np.array(moments) * omega(t) / L
        turns = (Z, whole * each + rest), (X, np.arctan2(np.hypot(l_x, l_y), l_z)), (Z, np.arctan2(l_x, l_y))
        halves = [np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)]) for axis, angle in turns]
        poses.append(product(product(*halves[:2]), halves[2]))
    return np.array([omega(t) for t in times]), np.array(poses)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
@pytest.mark.parametrize("options", [{"step": 1e-2}, {"rtol": 1e-10}], ids=["10 ms", "rtol"])
@pytest.mark.parametrize("modulus_at", [0.3, 0.97])
def test_free_rotation_follows_jacobi_functions(options, modulus_at, order):
    """Angular velocity and attitude over 100 s to 1e-7, with the inertia in the body's axes and in tilted ones."""
    moments, times = (1.0, 2.0, 3.0), np.linspace(0.0, 100.0, 21)
    omega, poses = free_rotation(moments, 2.0, modulus_at, times)
    R = rotation((1.0, 2.0, 3.0), 0.8) if order != (0, 1, 2) else np.eye(3)  # body ← principal axes
    m = cd.Mechanism(gravity=(0.0, 0.0, 0.0))
    back = quaternion(R.T)
    body = m.body("body", orientation=product(poses[0], back), mass=1.0, inertia=R @ np.diag(moments) @ R.T)
    start = m.state.with_rates(np.array([[0.1, 0.2, 0.3, *(R @ omega[0])]]))
    found = is_done(m.simulate(100.0, start, times=times, **options))
    assert np.abs(found.velocities(body)[:, 3:] - omega @ R.T).max() <= 1e-7
    p = np.array([product(pose, back) for pose in poses])
    p *= np.sign((p * found.quaternions(body)).sum(axis=1))[:, None]
    assert np.abs(found.quaternions(body) - p).max() <= 1e-7
    assert np.abs(found.positions(body) - np.outer(times, [0.1, 0.2, 0.3])).max() <= 1e-10


def test_a_pendulum_agrees_with_adams():
    """Project Chrono's test of its revolute joint, whose figures are MSC Adams': 1 kg at 2 m, J = .1 kg m²."""
    m = cd.Mechanism(gravity=(0.0, 0.0, -9.80665))
    bob = m.body("bob", position=(2.0, 0.0, 0.0), mass=1.0, inertia=0.1 * np.eye(3))
    m.revolute("A", m.ground.frame(z=Y), bob.frame((-2.0, 0.0, 0.0), z=Y))
    found = is_done(m.simulate(5.0, step=1e-3))
    assert found.positions(bob)[-1] == pytest.approx([-1.99968, 0.0, -0.0355587], abs=1e-4)
    assert found.accelerations(bob)[0, 2] == pytest.approx(-9.80665 * 4 / 4.1, abs=1e-12)
    force = found.reaction("A", on="a").force
    assert force[0] == pytest.approx([0.0, 0.0, -0.239187], abs=1e-6)
    assert force[-1] == pytest.approx([-0.510225, 0.0, -0.248259], abs=1e-5)


# --- driven -----------------------------------------------------------------------------------------------------------


CRANK, ROD, OFFSET = 0.2, 0.4, 0.05  # m


def crank_slider():
    """Crank φ = 2πt, rod and slider; the dimensions of OndselSolver's crank_slider, whose slider is at y = OFFSET."""
    m = cd.Mechanism("crank slider", gravity=(0.0, -9.81, 0.0))
    rise = np.arcsin(OFFSET / ROD)
    crank = m.body("crank", center=(0.1, 0, 0), mass=1.0, inertia=np.diag([1e-3, 4e-3, 4e-3]))
    rod = m.body(
        "rod",
        position=(CRANK, 0, 0),
        orientation=quaternion(rotation(Z, rise)),
        center=(0.2, 0, 0),
        mass=0.5,
        inertia=np.diag([1e-3, 7e-3, 7e-3]),
    )
    slider = m.body("slider", position=(CRANK + ROD * np.cos(rise), OFFSET, 0), mass=1.0, inertia=1e-3 * np.eye(3))
    m.revolute("A", m.ground.frame(z=Z, x=X), crank.frame(z=Z, x=X))
    m.revolute("B", crank.frame((CRANK, 0, 0), z=Z), rod.frame(z=Z))
    m.revolute("C", rod.frame((ROD, 0, 0), z=Z), slider.frame(z=Z))
    m.prismatic("D", m.ground.frame((0, OFFSET, 0), z=X, x=Y), slider.frame(z=X, x=Y))
    m.drive("motor", m["A"], lambda t: 2 * cd.pi * t)
    return m


@pytest.mark.parametrize("options, bar", [({"step": 1e-3}, 1e-10), ({"rtol": 1e-6}, 1e-6)], ids=["1 ms", "rtol"])
def test_driven_crank_slider_follows_its_closed_form(options, bar):
    """Over a turn: position to 1e-10 with any step, its derivatives to the bar; x(0), x(¼), x(½) are OndselSolver's."""
    found = is_done(crank_slider().simulate(1.0, **options))
    phi, w = 2 * np.pi * found.times, 2 * np.pi
    y = CRANK * np.sin(phi) - OFFSET  # drop along the rod, and its derivatives
    dy, ddy = CRANK * w * np.cos(phi), -CRANK * w**2 * np.sin(phi)
    along = np.sqrt(ROD**2 - y**2)
    x = CRANK * np.cos(phi) + along
    dx = -CRANK * w * np.sin(phi) - y * dy / along
    ddx = -CRANK * w**2 * np.cos(phi) - (dy**2 + y * ddy) / along - (y * dy) ** 2 / along**3
    at = [int(np.argmin(np.abs(found.times - t))) for t in (0.0, 0.25, 0.5)]
    assert found.times[at] == pytest.approx([0.0, 0.25, 0.5])
    assert x[at] == pytest.approx([0.59686269666, 0.370809924355, 0.19686269666], abs=1e-11)
    assert np.abs(found.positions("slider")[:, 0] - x).max() <= 1e-10
    assert np.abs(found.velocities("slider")[:, 0] - dx).max() <= bar
    assert np.abs(found.accelerations("slider")[:, 0] - ddx).max() <= 100 * bar  # 8 m/s²


# --- damping ----------------------------------------------------------------------------------------------------------


def test_a_damped_double_pendulum_agrees_with_modelica():
    """Modelica's DoublePendulum, version 4.0.0: boxes of steel, .5 m long and .06 m thick, and a damper of .1 N m s.

    Its published φ₁ −2.31793, φ₂ −1.73649 at 3 s were computed at a tolerance of 1e-6; recomputed at 1e-12 they are
    as below.
    """
    m = cd.Mechanism(gravity=(0.0, -9.80665, 0.0))
    mass = 7700 * 0.5 * 0.06**2
    across, along = mass * 2 * 0.06**2 / 12, mass * (0.5**2 + 0.06**2) / 12
    box = {"mass": mass, "center": (0.25, 0.0, 0.0), "inertia": np.diag([across, along, along])}
    one, two = m.body("one", **box), m.body("two", position=(0.5, 0.0, 0.0), **box)
    m.revolute("first", m.ground.frame(z=Z, x=X), one.frame(z=Z, x=X))
    m.revolute("second", one.frame((0.5, 0.0, 0.0), z=Z, x=X), two.frame(z=Z, x=X))
    m.spring("damper", m["first"], damping=0.1)
    found = is_done(m.simulate(3.0, rtol=1e-11))
    ends = [found.coordinate(m[name])[-1] for name in ("first", "second")]
    assert ends == pytest.approx([-2.31791568, -1.73653457], abs=1e-7)
    assert ends == pytest.approx([-2.31793, -1.73649], abs=5e-5)
