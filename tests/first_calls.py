"""First calls of a fresh process: ``python first_calls.py VERB`` makes one, and prints what it cost and loaded."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

HEAVY = ("numba", "llvmlite", "scipy")


def _four_bar(masses=False):
    import numpy as np

    import cardan as cd

    m = cd.Mechanism("four-bar", gravity=(0.0, -9.81, 0.0))
    given = {"mass": 1.0, "inertia": 0.01 * np.eye(3)} if masses else {}
    crank = m.body("crank", position=(0.0, 0.1, 0.0), **given)
    rod = m.body("rod", position=(0.2, 0.25, 0.0), **given)
    rocker = m.body("rocker", position=(0.45, 0.15, 0.0), **given)
    m.revolute("A", m.ground.frame(), crank.frame((0.0, -0.1, 0.0)))
    m.revolute("B", crank.frame((0.0, 0.1, 0.0)), rod.frame((-0.2, -0.05, 0.0)))
    m.spherical("C", rod.point((0.2, 0.05, 0.0)), rocker.point((0.0, 0.15, 0.0)))
    m.revolute("D", m.ground.frame((0.5, 0.0, 0.0)), rocker.frame((0.05, -0.15, 0.0)))
    return m


def assemble():
    return _four_bar().assemble().ok


def move():
    m = _four_bar()
    m.drive("motor", m["A"], lambda t: 0.3 * t)
    return m.move([0.0, 0.5, 1.0]).ok


def simulate():
    return _four_bar(masses=True).simulate(0.1).ok


def contact():
    import numpy as np

    import cardan as cd

    m = cd.Mechanism("bowl")
    x, y = np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6), indexing="ij")
    bowl = m.ground.attach(cd.geometry.Surface(np.stack([x, y, 0.3 * (x**2 + y**2)], axis=-1)))
    ball = m.body("ball", position=(0.4, 0.1, 0.3))
    m.contact("on", bowl, ball.attach(cd.geometry.sphere(0.1)))
    return m.assemble().ok


def distance():
    import numpy as np

    import cardan as cd

    x, y = np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6), indexing="ij")
    bowl = cd.geometry.Surface(np.stack([x, y, 0.3 * (x**2 + y**2)], axis=-1))
    pose = np.array([0.3, 0.2, 1.0, 1.0, 0.0, 0.0, 0.0])
    return cd.geometry.Distance(bowl, cd.geometry.sphere(0.1)).closest(pose).distance > 0.0


def session():
    m = _four_bar()
    with m.session() as session:
        hand = session.grasp(m["crank"], (0.0, 0.1, 0.0))
        hand.target = (0.05, 0.2, 0.0)
        for _ in range(5):
            session.step()
        return abs(hand.point[0] - 0.05) < 0.05


def many():
    m = _four_bar()
    return m.assemble_many([m.state] * 4).ok.all()


def picture():
    m = _four_bar()
    m.drive("motor", m["A"], lambda t: 0.3 * t)
    with tempfile.TemporaryDirectory() as folder:
        m.move([0.0, 0.1]).save(Path(folder) / "mechanism.png", mechanism=m)
        return any(Path(folder).iterdir())


VERBS = (assemble, move, simulate, contact, distance, session, many, picture)

if __name__ == "__main__":
    (verb,) = [verb for verb in VERBS if verb.__name__ == sys.argv[1]]
    began = time.process_time()
    is_right = bool(verb())
    seconds = time.process_time() - began
    print(json.dumps({"ok": is_right, "seconds": seconds, "heavy": [name for name in HEAVY if name in sys.modules]}))
