"""A heap of spheres or boxes that falls into a bin, here and in MuJoCo (Newton, elliptic cones): time, overlap, error.

`make bench-heaps` runs it in the environment of `make mujoco`. The error of both is that of Coulomb's law at the
contacts of a step, relative to the largest speed there: g|r - P(r - (u + mu|u_t| n)/g)| with the projection P onto the
cone; here the largest of all steps, with g = tr(G_cc)/3, there that of the last step, with g = 1/m_a + 1/m_b. MuJoCo's
contacts are soft by design, so its error is not one of its solver.
"""

from __future__ import annotations

import argparse
import time

import mujoco
import numpy as np

import cardan as cd

RADIUS, EDGE, PITCH, LAYERS = 0.05, 0.09, 0.12, 5
MU, STEP, DENSITY, GRAVITY = 0.5, 0.002, 1000.0, 9.81
WALLS = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))


def places(count: int) -> tuple[np.ndarray, float]:
    """Centres [m], shape (count, 3), and half the width of the bin."""
    side = max(1, round((count / LAYERS) ** 0.5))
    rng = np.random.default_rng(0)
    k = np.arange(count)
    grid = np.stack([k % side, k // side % side], axis=1) - 0.5 * (side - 1)
    flat = PITCH * grid + rng.uniform(-0.005, 0.005, (count, 2))
    return np.column_stack([flat, 0.06 + PITCH * (k // side**2)]), 0.5 * PITCH * side


def in_cardan(kind: str, count: int, duration: float) -> dict[str, float]:
    at, half = places(count)
    m = cd.Mechanism("heap")
    m.gravity = (0.0, 0.0, -GRAVITY)
    m.ground.attach(cd.shapes.half_space())
    for x, y in WALLS:
        m.ground.attach(cd.shapes.half_space(), m.ground.frame((half * x, half * y, 0.0), z=(-x, -y, 0.0)))
    shape = cd.shapes.sphere(RADIUS) if kind == "spheres" else cd.shapes.box(EDGE, EDGE, EDGE)
    for k, place in enumerate(at):
        m.body(f"{k}", position=place).attach(shape, density=DENSITY)
    m.collide("all", friction=MU)
    began = time.process_time()
    sim = m.simulate(duration, step=STEP, times=[0.0, duration], contacts="steps")
    spent = time.process_time() - began
    speed = float(np.linalg.norm(sim.states[-1].velocities[:, :3], axis=1).max())
    return {
        "ms a step": 1e3 * spent / max(sim.steps, 1),
        "time [s]": float(sim.times[-1]),
        "overlap [m]": sim.penetration,
        "error": sim.contact_error,
        "fastest [m/s]": speed,
    }


def in_mujoco(kind: str, count: int, duration: float) -> dict[str, float]:
    at, half = places(count)
    walls = "".join(
        f'<geom type="plane" size="3 3 .1" pos="{half * x} {half * y} 0" zaxis="{-x} {-y} 0"/>' for x, y in WALLS
    )
    shape, size = ("sphere", RADIUS) if kind == "spheres" else ("box", f"{EDGE / 2} {EDGE / 2} {EDGE / 2}")
    bodies = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom type="{shape}" size="{size}" density="{DENSITY}"/></body>'
        for x, y, z in at
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><size memory="1G"/><option timestep="{STEP}" cone="elliptic" solver="Newton"'
        f' gravity="0 0 {-GRAVITY}"/>'
        f'<default><geom friction="{MU} 0 0" condim="3"/></default>'
        f'<worldbody><geom type="plane" size="3 3 .1"/>{walls}{bodies}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    overlap, steps = 0.0, round(duration / STEP)
    began = time.process_time()
    for _ in range(steps):
        mujoco.mj_step(model, data)
        if data.ncon:
            overlap = max(overlap, -float(data.contact.dist[: data.ncon].min()))
    spent = time.process_time() - began
    return {
        "ms a step": 1e3 * spent / steps,
        "time [s]": data.time,
        "overlap [m]": overlap,
        "error": error_of(model, data),
        "fastest [m/s]": float(np.linalg.norm(data.qvel.reshape(-1, 6)[:, :3], axis=1).max()),
    }


def error_of(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Of Coulomb's law at the contacts of the last step, relative to the largest speed at one."""
    force, worst, fastest = np.zeros(6), 0.0, GRAVITY * STEP
    for k in range(data.ncon):
        contact = data.contact[k]
        mujoco.mj_contactForce(model, data, k, force)
        axes, u, g = contact.frame.reshape(3, 3), np.zeros(3), 0.0
        for side, geom in enumerate((contact.geom1, contact.geom2)):
            body = model.geom_bodyid[geom]
            if body:
                jacobian = np.zeros((3, model.nv))
                mujoco.mj_jac(model, data, jacobian, None, contact.pos, body)
                u += (1.0 if side else -1.0) * axes @ (jacobian @ data.qvel)
                g += 1.0 / model.body_mass[body]
        r, slip = STEP * force[:3], float(np.hypot(u[1], u[2]))
        u[0] += max(contact.dist, 0.0) / STEP
        back = r - (u + np.array([MU * slip, 0.0, 0.0])) / g
        x, t = back[0], float(np.hypot(back[1], back[2]))
        if MU * t <= -x:
            back = np.zeros(3)
        elif t > MU * x:
            n = (x + MU * t) / (1.0 + MU * MU)
            back = np.array([n, MU * n * back[1] / t, MU * n * back[2] / t])
        worst, fastest = max(worst, g * float(np.linalg.norm(r - back))), max(fastest, float(np.abs(u).max()))
    return worst / fastest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=1000)
    parser.add_argument("--duration", type=float, default=1.0, help="[s] simulated")
    parser.add_argument("--kinds", default="spheres,boxes")
    given = parser.parse_args()
    in_cardan("spheres", 5, 0.1)  # kernels and modules are loaded
    for kind in given.kinds.split(","):
        for name, run in (("MuJoCo " + mujoco.__version__, in_mujoco), ("Cardan", in_cardan)):
            found = run(kind, given.bodies, given.duration)
            print(f"{given.bodies} {kind}, {name:14}", ", ".join(f"{k} {v:.3g}" for k, v in found.items()), flush=True)


if __name__ == "__main__":
    main()
