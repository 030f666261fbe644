"""Reactions, efforts and motions against figures that other programs and articles print."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import cardan as cd
from cardan.math import euler

X, Y, Z = np.eye(3)


# --- every joint, by MSC Adams [Chrono] -------------------------------------------------------------------------------

AT = (1.0, 2.0, 3.0)
TILTED = ((1.0, 0.0, 0.0), -np.pi / 4)
# joint, place, orientation of the rod, its centre and inertia; then position at 1 and 2 s, and the reaction on the
# ground: force and torque at 1 and 2 s
ADAMS = {
    "revolute": (
        (AT, TILTED, (2, 0, 0), (0.04, 0.1, 0.1)),
        [(1.0421, 3.4139, 1.5861), (-1.0, 2.00063, 2.99937)],
        [(0.427164, 9.56081, -19.3673), (-0.00899056, -4.78385, -5.02305)],
        [(-13.8654, 0.206446, -0.206446), (-0.00614789, -9.8069, 9.8069)],
    ),
    "spherical": (
        (AT, TILTED, (2, 0, 0), (0.04, 0.1, 0.1)),
        [(0.107619, 2.0, 1.21012), (-0.951117, 2.0, 2.56052)],
        [(-11.4613, 0.0, -23.2273), (-6.15291, 0.0, -1.6251)],
        [(0, 0, 0), (0, 0, 0)],
    ),
    "cylindrical": (
        (AT, TILTED, (2, 0, 0), (0.04, 0.1, 0.1)),
        [(1.0421, 0.962238, -0.865563), (-1.0, -7.80602, -6.80728)],
        [(0.427153, 14.4646, -14.4646), (-0.00939531, 0.119586, -0.119586)],
        [(70.9248, -1.04724, 1.04724), (2.34548, 0.0921365, -0.0921365)],
    ),
    "prismatic": (
        (AT, TILTED, (2, 0, 0), (0.04, 0.1, 0.1)),
        [(3.0, -0.451662, 0.548338), (3.0, -7.80665, -6.80665)],
        [(0.0, 4.90332, -4.90332)] * 2,
        [(24.0426, 9.80665, 9.80665), (96.1704, 9.80665, 9.80665)],
    ),
    "universal": (
        ((0, 0, 0), ((1.0, -1.0, 0.0), np.pi / 2), (0, 0, -2), (0.1, 0.1, 0.04)),
        [(-0.63624, -0.614073, -1.79391), (-1.39994, -1.3607, -0.434373)],
        [(-7.94349, -7.92297, -23.3034), (-4.35503, -4.24486, -1.59623)],
        [(0.00107918, -0.381743, -0.270696), (-0.0418803, -0.0516185, -0.00688597)],
    ),
}


@pytest.mark.parametrize("kind", ADAMS)
def test_a_swinging_rod_agrees_with_adams(kind):
    """A rod of 1 kg, from rest in a horizontal pose.  The bars are the accuracy of the printed figures."""
    (at, turn, center, inertia), positions, forces, torques = ADAMS[kind]
    p = euler.from_axis_angle(*turn)
    R = euler.as_matrix(p)
    m = cd.Mechanism(gravity=(0.0, 0.0, -9.80665))
    rod = m.body("rod", position=at + R @ center, orientation=p, mass=1.0, inertia=np.diag(inertia))
    place = {"at": at} if kind == "spherical" else {"at": at, "axis": R @ Z}
    if kind == "universal":
        place = {"at": at, "axis": R @ X, "x": R @ Y}
    getattr(m, kind)("joint", m.ground, rod, **place)
    found = m.simulate(2.0, rtol=1e-9, times=[0.0, 1.0, 2.0])
    assert found.ok, found.text()
    bar = 3e-3 if kind == "universal" else 1e-3  # the energy of the published universal joint rises by 4e-4
    assert np.abs(found.positions(rod)[1:] - positions).max() < bar
    reaction = found.reaction("joint", on="a")
    assert np.abs(reaction.force[1:] - forces).max() < 10 * bar
    assert np.abs(reaction.torque[1:] - torques).max() < 10 * bar


def test_springs_with_laws_of_their_own_agree_with_adams():
    """[Chrono] TranSpringCB 3 and RotSpring 2: −50 x − 10 |x| x and dampers, between points and on a hinge."""
    m = cd.Mechanism(gravity=(0.0, 0.0, -9.80665))
    box = m.body("box", position=(-1, 4, 3), mass=1.0, inertia=np.diag([0.04, 0.1, 0.1]))
    length = cd.coordinate(m.ground.point((1, 2, 3)), box.point((2, 0, 0)), "distance")
    m.actuator("spring", length, lambda t, x, rate: -50 * (x - 2) - 10 * abs(x - 2) * (x - 2) - 5 * rate)
    found = m.simulate(2.0, rtol=1e-9, times=[0.0, 1.0, 2.0])
    published = [(-0.5266615, 3.486916, -1.046425), (3.410455, -0.3895675, 0.6115719)]
    assert np.abs(found.positions(box)[1:] - published).max() < 2e-6
    printed = [(-15.52339, 13.82865, -29.16117), (6.30257, -4.001877, -6.917083)]  # force on the ground; it pulls
    assert found.effort("spring")[1:] == pytest.approx(-np.linalg.norm(printed, axis=1), abs=1e-5)

    m = cd.Mechanism(gravity=(0.0, 0.0, -9.80665))
    rod = m.body("rod", position=(2, 0, 0), mass=1.0, inertia=np.diag([0.04, 0.1, 0.1]))
    hinge = m.revolute("hinge", m.ground, rod, at=(0, 0, 0), axis=Y)
    m.actuator("spring", hinge, lambda t, angle, rate: -(50 + 10 * abs(angle)) * angle - 10 * rate)
    found = m.simulate(2.0, rtol=1e-9, times=[0.0, 1.0, 2.0])
    assert np.abs(found.positions(rod)[1:] - [(1.804202, 0, -0.8630493), (1.895937, 0, -0.6367277)]).max() < 2e-6
    assert found.effort("spring")[1:] == pytest.approx([-22.25312, -18.34663], abs=1e-4)


# --- a driven four-bar, by OndselSolver [Ondsel2023] ------------------------------------------------------------------


def test_a_driven_four_bar_agrees_with_ondsel():
    """In-plane reactions and the torque of the motor at 0 and .25 s; both programs find three redundant equations."""
    m = cd.Mechanism("fourbar", gravity=(0.0, -9.81, 0.0))
    parts = [
        m.body(name, mass=0.2 * size, center=(size / 2, 0.1, 0.05), inertia=np.diag(inertia))
        for name, size, inertia in (
            ("crank", 1.0, (0.0025 / 3, 0.0505 / 3, 0.052 / 3)),
            ("coupler", 2.0, (0.005 / 3, 0.401 / 3, 0.404 / 3)),
            ("rocker", 1.5, (0.00125, 0.0565, 0.05725)),
        )
    ]
    crank, coupler, rocker = parts
    crank.position, coupler.position, rocker.position = (-0.1, -0.1, -0.1), (0.80, -0.14, 0.0), (1.95, 1.4, -0.1)
    coupler.orientation = (0.9198, 0, 0, 0.3923)
    rocker.orientation = (0.6945, 0, 0, -0.7195)
    m.revolute("A", m.ground.frame(x=X), crank.frame((0.1, 0.1, 0.1), x=X))
    m.revolute("B", crank.frame((0.9, 0.1, 0.1)), coupler.frame((0.1, 0.1, 0.0)))
    m.revolute("C", coupler.frame((1.9, 0.1, 0.0)), rocker.frame((0.1, 0.1, 0.1)))
    m.revolute("D", rocker.frame((1.4, 0.1, 0.1)), m.ground.frame((2.0, 0.0, 0.0)))
    m.drive("motor", m["A"], lambda t: 2 * cd.pi * t)
    motion = m.move([0.0, 0.25])
    assert motion.ok, motion.text()
    published = {
        "A": [(27.138030750487, 14.260541779148), (1.7992514858399, 5.2641100929329)],
        "B": [(23.979757342138, 16.222541779148), (1.79925148584, 4.0678366845842)],
        "C": [(6.5726995058466, 15.973008219032), (1.0135699381716, -2.1966298094325)],
        "D": [(-1.7451837588493, 15.785858048945), (0.42430877742034, -2.1575695674221)],
    }
    for name, forces in published.items():
        reaction = motion.reaction(name, on="a")
        assert reaction.determined.tolist() == [True, True, False, False, False, True]
        assert np.abs(reaction.force[:, :2] - forces).max() < 1e-9
    assert motion.effort("motor") == pytest.approx(
        [-12.193233423319, 1.439401188672], abs=1e-9
    )  # printed on the ground


# --- the bicycle of Whipple, by the benchmark [Meijaard2007] ----------------------------------------------------------


def bicycle():
    """Two wheels, frame and fork; z up, so that I_xz of the frame and of the fork change their signs."""
    m = cd.Mechanism("bicycle")
    tilt = np.pi / 10
    rear = m.body("rear", position=(0, 0, 0.3), mass=2, inertia=np.diag([0.0603, 0.12, 0.0603]))
    front = m.body("front", position=(1.02, 0, 0.35), mass=3, inertia=np.diag([0.1405, 0.28, 0.1405]))
    frame = m.body("frame", position=(0.3, 0, 0.9), mass=85, inertia=[[9.2, 0, -2.4], [0, 11, 0], [-2.4, 0, 2.8]])
    fork = m.body("fork", position=(0.9, 0, 0.7), mass=4)
    fork.inertia = [[0.05892, 0, 0.00756], [0, 0.06, 0], [0.00756, 0, 0.00708]]
    m.revolute("rear axle", frame, rear, at=(0, 0, 0.3), axis=Y)
    m.revolute("front axle", fork, front, at=(1.02, 0, 0.35), axis=Y)
    # the steering axis meets the ground .08 m (the trail) ahead of the front contact
    m.revolute("steer", frame, fork, at=(1.1, 0, 0), axis=(np.sin(tilt), 0, -np.cos(tilt)))
    m.wheel("rear tyre", rear.frame(z=Y), 0.3)
    m.wheel("front tyre", front.frame(z=Y), 0.35)
    return m


@pytest.mark.parametrize("speed", [0.0, 3.0, 5.0, 8.0])
def test_a_bicycle_follows_the_linear_equations_of_the_benchmark(speed):
    """M q̈ + v C₁ q̇ + (g K₀ + v² K₂) q = 0 for lean and steer, as printed; their eigenvalues at 5 m/s too."""
    M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
    K_0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
    K_2 = np.array([[0, 76.59734589573222], [0, 2.65431523794604]])
    C_1 = np.array([[0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])

    def matrix(v):
        below = -np.linalg.solve(M, np.hstack([9.81 * K_0 + v * v * K_2, v * C_1]))
        return np.vstack([np.eye(2, 4, 2), below])

    roots = np.sort_complex(np.linalg.eigvals(matrix(5.0)))
    assert np.abs(roots[[0, 3]] - [-14.07838969279822, -0.32286642900409]).max() < 1e-10
    assert roots[2] == pytest.approx(-0.77534188219585 + 4.46486771378823j, abs=1e-10)

    m = bicycle()
    state = m.assemble().state
    report = m.diagnose(state)
    assert (report.dof, report.velocity_dof) == (7, 3)
    lean = 1e-4
    turns = {"rear": speed / 0.3, "front": speed / 0.35}
    velocities = np.zeros((4, 6))
    for velocity, name in zip(velocities, m.bodies, strict=True):
        velocity[:3] = speed * X + np.cross(lean * X, state[name].position)
        velocity[3:5] = lean, turns.get(name, 0.0)
    found = m.simulate(1.0, state.with_rates(velocities), rtol=1e-11)
    assert found.ok and not found.notes, found.text()
    exact = np.array([expm(matrix(speed) * t) @ (0, 0, lean, 0) for t in found.times])
    R = np.array([state["frame"].matrix for state in found.states])
    assert np.abs(np.arctan2(R[:, 2, 1], R[:, 2, 2]) - exact[:, 0]).max() < 1e-5 * np.abs(exact[:, 0]).max()
    assert np.abs(found.coordinate(m["steer"]) - exact[:, 1]).max() < 1e-5 * np.abs(exact[:, 1]).max()
    assert np.ptp(found.energy.total) < 1e-9


def test_small_motions_of_a_bicycle_at_rest_are_those_of_the_benchmark():
    """Eigenvalues ±3.13164324790656 and ±5.53094371765393 1/s at 0 m/s; all others are zero."""
    m = bicycle()
    found = np.sort(m.linearize(m.assemble().state).eigenvalues.real)
    published = [3.13164324790656, 5.53094371765393]
    assert found[-2:] == pytest.approx(published, abs=1e-8) and -found[1::-1] == pytest.approx(published, abs=1e-8)
    assert np.abs(found[2:-2]).max() < 1e-4  # the roots of rounding


# --- a robot with six joints [Corke2011], [Armstrong1986] -------------------------------------------------------------

# of each link: length, twist and offset after Denavit and Hartenberg; mass, centre and moments; J G² of its motor
PUMA = [
    (0.0, np.pi / 2, 0.0, 1e-9, (0, 0, 0), (0.35, 0.35, 0.35), 200e-6 * 62.6111**2),
    (0.4318, 0.0, 0.0, 17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539), 200e-6 * 107.815**2),
    (0.0203, -np.pi / 2, 0.15005, 4.8, (-0.0203, -0.0141, 0.07), (0.066, 0.086, 0.0125), 200e-6 * 53.7063**2),
    (0.0, np.pi / 2, 0.4318, 0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3), 33e-6 * 76.0364**2),
    (0.0, -np.pi / 2, 0.0, 0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3), 33e-6 * 71.923**2),
    (0.0, 0.0, 0.0, 0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3), 33e-6 * 76.686**2),
]
NOMINAL = (0.0, np.pi / 4, np.pi, 0.0, np.pi / 4, 0.0)


def puma(gravity, accelerated=None) -> cd.Mechanism:
    """Puma 560 in its nominal pose, every joint driven; one of them is accelerated by 1 rad/s²."""
    m = cd.Mechanism("puma", gravity=gravity)
    last, R, r = m.ground, np.eye(3), np.zeros(3)
    for k, (length, twist, offset, mass, center, moments, _) in enumerate(PUMA):
        at, axis = r, R[:, 2]
        turned = euler.as_matrix(euler.from_axis_angle(Z, NOMINAL[k]))
        r = r + R @ (turned @ (length, 0, 0) + (0, 0, offset))
        R = R @ turned @ euler.as_matrix(euler.from_axis_angle(X, twist))
        body = m.body(f"link {k}", position=r, orientation=R, mass=mass, center=center, inertia=np.diag(moments))
        m.revolute(f"J{k}", last, body, at=at, axis=axis)
        m.drive(f"motor {k}", m[f"J{k}"], (lambda t: 0.5 * t * t) if k == accelerated else 0.0)
        last = body
    return m


def test_a_puma_in_its_nominal_pose_has_the_torques_and_the_inertia_of_the_toolbox():
    m = puma((0, 0, -9.81))
    found = m.equilibrium()
    assert found.ok, found.text()
    assert found.state["link 5"].position == pytest.approx((0.5963, -0.1501, -0.0144), abs=1e-4)
    torques = [found.effort(f"motor {k}") for k in range(6)]
    assert torques == pytest.approx([0, 31.6399, 6.0351, 0, 0.0283, 0], abs=1e-4)
    motions = [puma((0, 0, 0), k).move([0.0, 1e-3]) for k in range(6)]
    inertia = np.array([[motion.effort(f"motor {k}")[0] for k in range(6)] for motion in motions])
    printed = [
        [3.6594, -0.4044, 0.1006, -0.0025, 0.0000, 0.0000],
        [-0.4044, 4.4137, 0.3509, 0.0000, 0.0024, 0.0000],
        [0.1006, 0.3509, 0.9378, 0.0000, 0.0015, 0.0000],
        [-0.0025, 0.0000, 0.0000, 0.1925, 0.0000, 0.0000],
        [0.0000, 0.0024, 0.0015, 0.0000, 0.1713, 0.0000],
        [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.1941],
    ]
    assert inertia + np.diag([link[-1] for link in PUMA]) == pytest.approx(np.array(printed), abs=1.1e-4)
