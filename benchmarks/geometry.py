"""NURBS evaluation, closest pairs and meshes beside OCP, splinepy, geomdl and trimesh, in one run.

    python benchmarks/geometry.py [--pairs 1000] [--judges 1000] [--only evaluate,pairs,gaps,faces,meshes,compile]

Peers that are not installed are left out.  Answers are judged by SciPy's splines with dense sampling and polishing
(tests/distance_judge.py), which shares no code with the library.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import cardan as cd
import distance_judge as judge

g = cd.geometry
SECTIONS = ("evaluate", "pairs", "gaps", "faces", "meshes", "compile")


def best(function, number, repeat=7):
    """Least seconds of one of ``number`` calls in a row."""
    found = []
    for _ in range(repeat):
        began = time.perf_counter()
        for _ in range(number):
            function()
        found.append(time.perf_counter() - began)
    return min(found) / number


def bumpy(rng):
    return g.Surface(*judge.bumps(rng))


def occ_surface(s, pose=None):
    from OCP.Geom import Geom_BSplineSurface
    from OCP.gp import gp_Pnt
    from OCP.TColgp import TColgp_Array2OfPnt
    from OCP.TColStd import TColStd_Array1OfInteger, TColStd_Array1OfReal, TColStd_Array2OfReal

    points = s.points
    if pose is not None:
        points = points @ judge.rotation(pose[3:]).T + pose[:3]
    n, m = points.shape[:2]
    poles, weights = TColgp_Array2OfPnt(1, n, 1, m), TColStd_Array2OfReal(1, n, 1, m)
    for i in range(n):
        for j in range(m):
            poles.SetValue(i + 1, j + 1, gp_Pnt(*map(float, points[i, j])))
            weights.SetValue(i + 1, j + 1, float(s.weights[i, j]))
    axes = []
    for t in s.knots:
        values, times = np.unique(t, return_counts=True)
        a, b = TColStd_Array1OfReal(1, len(values)), TColStd_Array1OfInteger(1, len(values))
        for k in range(len(values)):
            a.SetValue(k + 1, float(values[k]))
            b.SetValue(k + 1, int(times[k]))
        axes.append((a, b))
    (ku, mu), (kv, mv) = axes
    return Geom_BSplineSurface(poles, weights, ku, kv, mu, mv, *s.degrees)


def evaluate():
    s = bumpy(np.random.default_rng(0))
    uv = np.random.default_rng(1).random((20000, 2))
    for order in range(3):
        out = s.evaluate(uv, order)
        print(f"ours, batched, order {order}: {best(lambda k=order: s.evaluate(uv, k), 1, 30) / len(uv) * 1e6:.3f} µs")
    assert out.shape == (20000, 6, 3)
    print(f"ours, one point with second derivatives: {best(lambda: s.derivatives(0.3, 0.4, 2), 20000):.2e} s")
    try:
        from OCP.Geom import Geom_Plane
        from OCP.gp import gp_Dir, gp_Pnt, gp_Vec

        theirs, plane = occ_surface(s), Geom_Plane(gp_Pnt(0.0, 0.0, 0.0), gp_Dir(0.0, 0.0, 1.0))
        p, v = gp_Pnt(), [gp_Vec() for _ in range(5)]
        rows = (0, 2, 5)
        places = uv[:2000].tolist()

        def calls(shape, order):
            method, out = getattr(shape, f"D{order}"), (p, *v[: rows[order]])
            for x, y in places:
                method(x, y, *out)

        for order in range(3):
            theirs_all, call = (best(lambda z=z, k=order: calls(z, k), 1, 15) / len(places) for z in (theirs, plane))
            ours = best(lambda k=order: s.evaluate(uv, k), 1, 15) / len(uv)
            net = theirs_all - call  # D0, D1, D2 of a plane is nearly nothing but the call
            print(
                f"OCP D{order} {theirs_all * 1e6:.3f} µs, {net * 1e6:.3f} µs without the call from Python; ours, "
                f"batched, {ours * 1e6:.3f} µs: {theirs_all / ours:.1f}×, without the call {net / ours:.1f}×"
            )
        error = max(
            abs(np.array([q.X(), q.Y(), q.Z()]) - s(*x)).max() for x in uv[:200] for q in [theirs.Value(*map(float, x))]
        )
        print(f"largest difference to OCP: {error:.1e}")
    except ImportError as error:
        print("OCP is left out:", error)
    try:
        import splinepy

        knots = [t.tolist() for t in s.knots]
        theirs = splinepy.NURBS(s.degrees, knots, s.points.swapaxes(0, 1).reshape(-1, 3), s.weights.T.reshape(-1, 1))
        print(f"splinepy, batched, points: {best(lambda: theirs.evaluate(uv), 1) / len(uv) * 1e6:.3f} µs")
        spent = best(lambda: theirs.derivative(uv, [2, 0]), 1) / len(uv) * 1e6
        print(f"splinepy, batched, one second derivative: {spent:.3f} µs")
        print(f"largest difference to splinepy: {np.abs(theirs.evaluate(uv) - s.evaluate(uv)).max():.1e}")
    except ImportError as error:
        print("splinepy is left out:", error)
    try:
        from geomdl import NURBS

        theirs = NURBS.Surface()
        theirs.degree_u, theirs.degree_v = s.degrees
        theirs.ctrlpts_size_u, theirs.ctrlpts_size_v = s.points.shape[:2]
        h = s.homogeneous
        theirs.ctrlptsw = h.reshape(-1, 4).tolist()
        theirs.knotvector_u, theirs.knotvector_v = (t.tolist() for t in s.knots)
        print(f"geomdl, second derivatives: {best(lambda: theirs.derivatives(0.3, 0.4, 2), 200) * 1e6:.0f} µs")
    except ImportError as error:
        print("geomdl is left out:", error)


def pairs(count, judges):
    try:
        from OCP.GeomAPI import GeomAPI_ExtremaSurfaceSurface as Extrema
    except ImportError as error:
        Extrema = None
        print("OCP is left out:", error)
    rng = np.random.default_rng(2024)
    g.closest_pair(bumpy(rng), bumpy(rng), judge.random_pose(rng, 1.0))
    fixed = bumpy(rng), bumpy(rng)
    kept_query = g.Distance(*fixed)
    copies = tuple(map(judge.judged, fixed))
    other = np.random.default_rng(7)
    made = [judge.bumps(other) for _ in range(100)]
    print(f"making a surface: {best(lambda: [g.Surface(*x) for x in made], 1) / len(made) * 1e3:.3f} ms", flush=True)
    for name in ("seeded pairs", "random poses"):
        first, kept, extrema, wrong, edges, corners, touching, missed = [], [], [], 0, 0, 0, 0, 0
        cases = []
        for _ in range(count):  # timed without the judge, whose arrays would fill the caches of the processor
            a, b = (bumpy(rng), bumpy(rng)) if name == "seeded pairs" else fixed
            pose = judge.random_pose(rng, rng.uniform(0.6, 1.6))
            began = time.perf_counter()
            query = g.Distance(a, b) if name == "seeded pairs" else kept_query
            pair = query.closest(pose)
            first.append(time.perf_counter() - began)
            began = time.perf_counter()
            query.closest(pose)
            kept.append(time.perf_counter() - began)
            cases.append((a, b, pose, pair))
        for a, b, pose, pair in cases[:30] if Extrema is not None else ():
            one, two = occ_surface(a), occ_surface(b, pose)
            began = time.perf_counter()
            e = Extrema(one, two)
            found = e.LowerDistance() if e.NbExtrema() else np.inf
            extrema.append(time.perf_counter() - began)
            missed += found > pair.distance + 1e-6
        text = f"{name}: first {np.median(first) * 1e3:.3f} ms, tree kept {np.median(kept) * 1e3:.3f} ms "
        text += f"(90 %: {np.quantile(kept, 0.9) * 1e3:.3f})"
        if extrema:
            ratio = np.median(extrema) / np.median(first)
            with_kept = np.median(extrema) / np.median(kept)
            text += (
                f"; OCP Extrema {np.median(extrema) * 1e3:.2f} ms ({ratio:.1f}×, {with_kept:.1f}× with kept trees), "
            )
            text += f"misses {missed}/{len(extrema)}"
        print(text, flush=True)
        for k, (a, b, pose, pair) in enumerate(cases[:judges]):
            bounds = [(np.minimum(q, 1.0 - q) < 1e-12).sum() for q in pair.parameters]
            edges += max(bounds) > 0
            corners += max(bounds) == 2
            touching += pair.distance < judge.TOUCH
            ja, jb = (judge.judged(a), judge.judged(b)) if name == "seeded pairs" else copies
            fault = judge.pair_verdict(ja, jb, pose, pair)
            if fault:
                wrong += 1
                print(f"  case {k}: {fault}; margin {pair.margin:.1e}")
            if k % 100 == 99:
                print(f"  {name}: {k + 1 - wrong}/{k + 1}", flush=True)
        done = min(judges, count)
        if done:
            print(f"{name}: {done - wrong}/{done} right, {edges} on an edge ({corners} at a corner), {touching} touch")
    pair = kept_query.closest(judge.random_pose(rng, 1.2))
    pose = judge.random_pose(rng, 1.2)
    kept_query.closest(pose)
    moved = [pose.copy(), pose.copy()]
    moved[1][:3] += 1e-3 / np.sqrt(3.0)
    state = {"k": 0}

    def step():
        state["k"] ^= 1
        kept_query.track(moved[state["k"]])

    print(f"warm after 1 mm, from Python: {best(step, 5000) * 1e6:.2f} µs")


def gaps():
    """A hill above a hill, turned over, at known gaps: the normals of one point of each are opposed."""
    rng = np.random.default_rng(5)
    x, y = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8), indexing="ij")

    def hill():
        z = -0.25 * (x**2 + y**2) + 0.004 * rng.normal(size=x.shape)
        return g.Surface(np.stack([x, y, z], -1), rng.uniform(0.9, 1.1, x.shape))

    wrong, spent = 0, {}
    sizes = (1e-3, 1e-4, 1e-5, 1e-6, 0.0, -1e-4, -1e-3, -1e-2, -0.05, -0.1)
    for _ in range(50):
        a, b = hill(), hill()
        query = g.Distance(a, b)
        query.closest((0, 0, 1.0, 0, 1.0, 0, 0), signed=True)
        q = rng.uniform(0.4, 0.6, (2, 2))
        na, nb = g.normal(a, *q[0]), g.normal(b, *q[1])
        R = frame(-na) @ frame(nb).T
        p = cd.geometry.distance.euler.from_matrix(R)
        for gap in sizes:
            pose = np.concatenate([a(*q[0]) + gap * na - R @ b(*q[1]), p])
            began = time.perf_counter()
            pair = query.closest(pose, signed=True)
            spent.setdefault(gap, []).append(time.perf_counter() - began)
            if pair.gap is None or abs(pair.gap - gap) > 1e-8:
                wrong += 1
                print(f"  gap {gap}: ours {pair.gap}, distance {pair.distance:.2e}")
    print(f"gaps 1e-3 … 0 … −0.05 of the size: {50 * len(sizes) - wrong}/{50 * len(sizes)} right; medians:")
    print("  " + ", ".join(f"{gap:g}: {np.median(times) * 1e3:.2f} ms" for gap, times in spent.items()))


def frame(n):
    t = np.cross(n, (1.0, 0, 0))
    t /= np.linalg.norm(t)
    return np.stack([t, np.cross(n, t), n], axis=1)


def faces(count):
    f = judge.face(g)
    plate_judge = judge.Plate(judge.judged(f.surface))
    query = g.Distance(f, (0.0, 0.0, 0.0))
    rng = np.random.default_rng(8)
    wrong, edges, spent = 0, 0, []
    for k in range(count):
        p = rng.uniform((-0.2, -0.2, -0.4), (1.2, 1.2, 0.4))
        began = time.perf_counter()
        pair = query.closest(p)
        spent.append(time.perf_counter() - began)
        edge = f.edge(pair)
        edges += edge is not None
        q = pair.parameters[0] if edge is None else edge.curve(float(pair.parameters[0][0]))
        fault = plate_judge.verdict(p, pair.distance, q)
        if fault:
            wrong += 1
            print(f"  case {k}: {fault}; margin {pair.margin:.1e}")
        if k % 100 == 99:
            print(f"  {k + 1 - wrong}/{k + 1}", flush=True)
    print(
        f"trimmed face: {count - wrong}/{count} right, {edges} on an edge; median {np.median(spent) * 1e3:.2f} ms, "
        f"largest {max(spent) * 1e3:.1f} ms"
    )


def torus_mesh(n, m):
    u, v = np.meshgrid(np.arange(n), np.arange(m), indexing="ij")
    a, b = 2 * np.pi * u / n, 2 * np.pi * v / m
    r = 2.0 + 0.7 * np.cos(b) + 0.1 * np.sin(5 * a)
    p = np.stack([r * np.cos(a), r * np.sin(a), 0.7 * np.sin(b)], -1).reshape(-1, 3)
    k, right, up, both = (
        i.ravel() for i in (u * m + v, (u + 1) % n * m + v, u * m + (v + 1) % m, (u + 1) % n * m + (v + 1) % m)
    )
    return p, np.concatenate([np.stack([k, right, both], 1), np.stack([k, both, up], 1)])


def meshes():
    p, f = torus_mesh(250, 200)
    mesh = g.Mesh(p, f)
    print(f"mesh of {len(f)} faces: build {best(lambda: g.Mesh(p, f), 1, 5):.3f} s")
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2000, 3)) * 2
    mesh.closest_point(points[0])
    began = time.perf_counter()
    ours = np.array([mesh.closest_point(x).distance for x in points])
    print(f"closest point: {(time.perf_counter() - began) / len(points) * 1e6:.1f} µs")
    try:
        import trimesh

        other = trimesh.Trimesh(p, f, process=False)
        trimesh.proximity.closest_point(other, points[:2])
        began = time.perf_counter()
        theirs = trimesh.proximity.closest_point(other, points)[1]
        spent = (time.perf_counter() - began) / len(points) * 1e6
        print(f"trimesh: {spent:.0f} µs, largest difference {np.abs(ours - theirs).max():.1e}")
    except ImportError as error:
        print("trimesh is left out:", error)
    a, b = (g.Mesh(*torus_mesh(*size)) for size in ((100, 50), (125, 40)))
    spent, wrong, crossing = [], 0, 0
    a.closest_pair(b, (9, 0, 0))
    for k in range(200):
        pose = judge.random_pose(rng, rng.uniform(4.0, 8.0))
        began = time.perf_counter()
        pair = a.closest_pair(b, pose)
        spent.append(time.perf_counter() - began)
        moved = b.vertices @ judge.rotation(pose[3:]).T + pose[:3]
        truth = judge.mesh_distance(a.vertices[a.faces], moved[b.faces])
        crossing += truth == 0.0
        if abs(truth - pair.distance) > 1e-12:
            wrong += 1
            print(f"  case {k}: ours {pair.distance:.15f}, brute force {truth:.15f}")
    print(
        f"mesh–mesh, {len(a.faces)} × {len(b.faces)} faces: {200 - wrong}/200 right, {crossing} cross; "
        f"median {np.median(spent) * 1e3:.2f} ms"
    )


COLD = """
import time, numpy as np, cardan as cd
from cardan.kernel import jit
def nothing(op, ints, floats, q, step, out, jacobian, work):
    return 0
jit.evaluator(nothing)  # loads the compiler itself
g = cd.geometry
x, y = np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8), indexing="ij")
s = g.Surface(np.stack([x, y, x * y], -1))
t = time.perf_counter(); s.derivatives(0.3, 0.4, 2); s.evaluate([(0.1, 0.2)], 2); a = time.perf_counter() - t
t = time.perf_counter(); g.closest_pair(s, s, (0, 0, 1.0)); b = time.perf_counter() - t
print(f"cold compile: evaluation {a:.1f} s; search {b:.1f} s")
"""


def compile_cold():
    with tempfile.TemporaryDirectory() as directory:
        import os

        environment = {**os.environ, "CARDAN_CACHE_DIR": directory}
        print(
            subprocess.run(
                [sys.executable, "-c", COLD], env=environment, capture_output=True, text=True, check=True
            ).stdout.strip()
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--judges", type=int, help="pairs to judge; all by default, 0 for timings alone")
    parser.add_argument("--only", default=",".join(SECTIONS))
    args = parser.parse_args()
    for name in args.only.split(","):
        print(f"== {name}", flush=True)
        {
            "evaluate": evaluate,
            "pairs": lambda: pairs(args.pairs, args.pairs if args.judges is None else args.judges),
            "gaps": gaps,
            "faces": lambda: faces(args.pairs),
            "meshes": meshes,
            "compile": compile_cold,
        }[name]()


if __name__ == "__main__":
    main()
