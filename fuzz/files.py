"""Mutated model files: each must give a valid mechanism or an error with its place, in less than a second.

While a file is read, an audit hook refuses the compilation and execution of code, and processes.

    python fuzz/files.py --cases 100000 --jobs 2
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
from scipy.interpolate import PPoly

import cardan as cd
from cardan.examples import GALLERY
from cardan.files import reader, writer

SECONDS = 1.0  # of processor time, for one file
REPORT = 5000  # cases between two lines on stderr
SEEDS = (
    *("planar_4r", "rsur", "slider_crank", "planetary_gear", "indexing_table", "folding_table", "differential"),
    *("cam_flat", "geneva", "ball_in_bowl", "involute_pair", "surface_pair"),  # contacts
)
FORBIDDEN = (
    "exec",
    "compile",
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "import",
    "socket.connect",
)

HOSTILE = [
    '"__import__(\'os\').system(\'true\')"',
    '"9^9^9^9^9^9"',
    '"(" ',
    '"' + "(" * 5000 + "1" + ")" * 5000 + '"',
    '"' + "-" * 5000 + '1"',
    '"' + "1+" * 9000 + '1"',
    '"' + "sin(" * 60 + "q" + ")" * 60 + '"',
    '"a0 = q*q; ' + "".join(f"a{k + 1} = a{k}*a{k}; " for k in range(300)) + 'a299"',
    '"a0 = sin(t); ' + "".join(f"a{k + 1} = sin(a{k}); " for k in range(400)) + 'a399"',
    '"1/0"', '"log(0)"', '"sqrt(-1)"', '"t = 1; t"', '"clip(1, 2)"', '"1e999"', '"lambda: 0"', '"q.__class__"',
    '"\\u0000"',
    '"2^0.5^-3^t"', '"atan2(0,0)"', '"(1-t)^0.5"', '"norm3(1,2,3)"',
]  # fmt: skip
NUMBERS = [
    "nan", "inf", "-inf", "1e308", "-1e308", "1e999", "0", "-0.0", "1e-320", "9" * 5000, "0x7fffffffffffffff", "true",
    "[]", "{}", '""', "2020-01-01", "1_000", "[[1,2],[3]]", "[1,2,3,4,5,6,7]", "'x'", "null", "NaN", "[[[[[[[1]]]]]]]",
    "[" * 3000 + "1" + "]" * 3000, "{ a = 1 }", "[" + "0.5, " * 3000 + "1]", '"1/3"', '"pi*mm"',
]  # fmt: skip


def rich() -> cd.Mechanism:
    """Everything that a file can contain."""

    @cd.primitive(i="point", j="point", up="vector of i")
    def equal_height(i, j, up, *, offset=0.0):
        return cd.dot(up, j - i) - offset

    m = cd.Mechanism("rich", gravity=(0.1, -9.0, 1.0))
    crank = m.body("crank", mass=2.0, inertia=np.diag([0.1, 0.2, 0.25]), center=(0.1, 0.2, 0.0))
    wheel = m.body("wheel", position=(1, 0, 0))
    carriage = m.body("the carriage", position=(0, 0, 2), orientation=(0.9, 0.1, 0.2, 0.3))
    a = m.revolute("A", m.ground.frame(), crank.frame())
    w = m.revolute("W", crank.frame((1, 0, 0), z=(0.1, 0.2, 1), x=(1, 0, 0)), wheel.frame(z=(0.1, 0.2, 1), x=(1, 0, 0)))
    p = m.cylindrical("P", m.ground.frame((0, 0, 2), z=(1, 0, 0)), carriage.frame(z=(1, 0, 0)))
    m.gear("g", a, w, ratio=-2.0, phase=0.1)
    m.couple("c", a, p.of("displacement"), lambda q: 0.3 * cd.sin(q) + q**3)
    m.couple("cs", a, p.of("displacement"), cd.spline((-9.0, -1.0, 0.5, 2.0, 9.0), (0.0, 0.1, 0.3, 0.2, 0.5)))
    m.couple("cp", w, p.of("displacement"), PPoly([[0.0, 0.0], [1.0, -1.0], [0.0, 2.0], [0.0, 1.0]], [0, 1, 3]))
    m.drive("ds", p.of("displacement"), ((0.0, 1.0, 2.0), (0.0, 0.4, 0.1)))
    m.display = cd.Display(length="inch")
    m.drive("d", a, lambda t: 0.2 * cd.clip(t, 0.0, 2.0))
    m.limit("l", cd.coordinate(m.ground.frame(), wheel.frame(), "angle"), lower=-2.0)
    m.constrain("k", equal_height, i=m.ground.point(), j=carriage.point((0.2, 0, 0)), up=m.ground.vector(0, 1, 0.5))
    m.spring("s", m.ground.point((0, 1, 0)), wheel.point(), stiffness=9.0, rest=0.5, damping=0.1)
    m.spring("s2", p.of("angle"), stiffness=9.0)
    m.force("f", wheel.point((0.1, 0, 0)), lambda t, state: (0.1, 0.2 * cd.sin(t), 0.0))
    m.torque("tau", wheel, (0.0, 0.0, 0.5), axes="body")
    m.actuator("act", w, lambda t, x, rate: -3.0 * x - 0.1 * rate + cd.sin(t))
    m.friction("fr", w, viscous=0.1, coulomb=0.2)
    m.bushing("b", m.ground.frame((1, 0, 0)), wheel.frame(), (9.0,) * 6, np.eye(6))
    m.damper("da", m.ground.frame((1, 0, 0)), wheel.frame(), (0.1,) * 6)
    a.inertia = 0.2
    with_contacts(m, crank, wheel, carriage)
    names = tuple(m.bodies)
    q = np.array([(*b.position, *b.orientation) for b in m.bodies.values()])
    m.poses["open"] = cd.State(names, {n: k for k, n in enumerate(names)}, q, angles={"A": 7.0}, time=0.5)
    return m


def with_contacts(m: cd.Mechanism, crank: cd.Body, wheel: cd.Body, carriage: cd.Body) -> None:
    """A contact with every sort of shape that a file can contain."""
    g = cd.geometry
    net = [[(x, y, 0.1 * (x * x + y * y)) for y in (-1.0, 0.0, 1.0)] for x in (-1.0, 0.0, 1.0)]
    bowl = m.ground.attach(g.Surface(net, degree=2), m.ground.frame((0, 0, -1)), color="#334455")
    wave = m.ground.attach(g.traced(lambda u, v: (u, v, 0.1 * cd.sin(u + 2.0 * v)), (-1, 1), (-2, 2)))
    ball = m.body("ball", position=(0, 0, -0.8), mass=1.0, inertia=0.1 * np.eye(3))
    tread = ball.attach(g.sphere(0.2))
    m.contact("on", bowl, tread, mode="roll")
    m.contact("over", wave, tread, side="inside")
    m.wheel("rolls", wheel.frame((0, 0, 0.1), z=(0, 1, 0)), 0.3)
    track = m.ground.attach(g.Curve([(0, 0), (1, 0), (1, 1), (0, 1)], periodic=True, degree=2))
    m.point_on_curve("pin", crank.point((0.1, 0.2, 0)), track)
    plate = g.Surface([[(-1, -1, 0), (-1, 1, 0)], [(1, -1, 0), (1, 1, 0)]], degree=1)
    loop = g.Curve([(0.5, 0.1), (0.9, 0.1), (0.9, 0.5), (0.5, 0.9), (0.1, 0.5), (0.1, 0.1), (0.5, 0.1)], degree=2)
    m.contact("trimmed", m.ground.attach(g.Face(plate, [loop]), m.ground.frame((0, 0, -1))), tread)
    m.contact("needle", bowl, ball.attach(g.analytic.Point((0.0, 0.0, -0.3))))
    m.point_on_surface("tip", crank.point(), carriage.attach(g.cylinder(0.3, (-1.0, 2.0))))


def seeds() -> list[tuple[str, bool]]:
    """Texts to mutate, and whether each is JSON."""
    made = [GALLERY[name].build() for name in SEEDS] + [rich()]
    texts = [(writer.dumps(m), False) for m in made]
    texts += [(writer.dumps(m, as_json=True), True) for m in made]
    texts.append((writer.dumps(made[-1], units={"length": "mm", "angle": "deg", "mass": "g"}), False))
    header = 'cardan = 1\n[units]\nlength = "mm"\n[parameters]\nL = 2.0\nH = "L/2 + 30*mm"\n'
    header += '[bodies.a]\nposition = ["L", "H", 0]\nshapes = [{ geometry = "circle", radius = 0.5 }]\n'
    header += '[bodies.a.frames]\ntip = { origin = ["L/2", 0, 0] }\n[joints.j]\nkind = "revolute"\na = "ground"\n'
    texts.append(
        (header + 'b = "a.tip"\n[joints.m]\nkind = "drive"\ncoordinate = "j"\nfunction = "H*sin(L*t)"\n', False)
    )
    return texts


def mutated(rng: random.Random, text: str) -> str:
    """The text with one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(MUTATIONS)(rng, text)
    return text


def _bytes(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    what = rng.choice(["", chr(rng.randrange(1, 256)), rng.choice("[]{}=\"'\\#.,\n\t\x00\r_-e+é"), text[at : at + 9]])
    return text[:at] + what + text[at + rng.choice((0, 1, 1, 5)) :]


def _lines(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    change = rng.randrange(4)
    if change == 0:
        del lines[a]
    elif change == 1:
        lines.insert(b, lines[a])
    elif change == 2:
        lines[a], lines[b] = lines[b], lines[a]
    else:
        lines = lines[:a]
    return "\n".join(lines)


def _keys(rng: random.Random, text: str) -> str:
    words = list(re.finditer(r"[A-Za-z_]\w*", text))
    if not words:
        return text
    one, other = rng.choice(words), rng.choice(words)
    new = rng.choice([other.group(), one.group()[::-1], one.group() + "x", one.group()[1:], "ground", "kind", "body"])
    return text[: one.start()] + new + text[one.end() :]


def _numbers(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r"-?\d+\.?\d*(?:e[+-]?\d+)?", text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + rng.choice([*NUMBERS, *HOSTILE]) + text[one.end() :]


def _strings(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r'"[^"\n]*"', text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + rng.choice([*HOSTILE, *NUMBERS[:12]]) + text[one.end() :]


def _counts(rng: random.Random, text: str) -> str:
    count = rng.choice((50, 400))
    many = "".join(f'\n[{rng.choice(("bodies", "joints", "loads"))}.n{k}]\nkind = "revolute"' for k in range(count))
    return text + (many if rng.random() < 0.7 else "\n" + "[a.b" + ".c" * 2000 + "]")


MUTATIONS = (_bytes, _bytes, _lines, _keys, _keys, _numbers, _numbers, _strings, _strings, _counts)

_watching = False


def _audit(event: str, arguments: Any) -> None:
    if _watching and event.startswith(FORBIDDEN):
        raise AssertionError(f"a file caused {event}: {str(arguments)[:200]}")


def judge(text: str, as_json: bool) -> tuple[str, float]:
    """Whether a text is "valid" or "refused", and the seconds it took; AssertionError if it is neither."""
    global _watching  # noqa: PLW0603  # an audit hook cannot be removed
    began = time.process_time()
    try:
        _watching = True
        try:
            made = reader.read(text, "mutated", as_json)
        finally:
            _watching = False
    except reader.FileError as error:
        seconds = time.process_time() - began
        assert error.problems
        for problem in error.problems:
            assert problem.message and (problem.line > 0 or problem.key), problem
            assert problem.line <= text.count("\n") + 1, problem
        return "refused", seconds
    seconds = time.process_time() - began
    again = writer.dumps(made)
    assert writer.dumps(reader.read(again, "saved", False)) == again, "a second save differs"
    return "valid", seconds


def run(first: int, cases: int) -> tuple[Counter[str], float, list[str]]:
    """Cases of consecutive numbers: how many were valid, the longest time, and failures."""
    texts = seeds()
    for text, as_json in texts:
        assert judge(text, as_json)[0] == "valid"  # also loads every module, before imports are watched
    judge("cardan = 1\n[bodies.a]\nposition = 1  # text that the standard library reads\n", False)
    judge("x", True)
    sys.addaudithook(_audit)
    counted: Counter[str] = Counter()
    longest, failures = 0.0, []
    for k in range(first, first + cases):
        rng = random.Random(k)
        text, as_json = rng.choice(texts)
        text = mutated(rng, text)
        try:
            verdict, seconds = judge(text, as_json)
        except BaseException as error:  # whatever it is, it is a failure
            if isinstance(error, KeyboardInterrupt):
                raise
            failures.append(f"case {k}: {type(error).__name__}: {str(error)[:300]}")
            continue
        counted[verdict] += 1
        longest = max(longest, seconds)
        if seconds > SECONDS:
            failures.append(f"case {k}: {seconds:.2f} s")
        if (k + 1) % REPORT == 0:
            told = "; ".join(failures)
            print(f"after case {k}: longest {longest:.2f} s; {len(failures)} failures {told}", file=sys.stderr)
    return counted, longest, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    share = -(-args.cases // args.jobs)
    parts = [(args.first + k * share, min(share, args.cases - k * share)) for k in range(args.jobs)]
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        results = pool.starmap(run, parts)
    counted = sum((result[0] for result in results), Counter())
    failures = [line for result in results for line in result[2]]
    longest = max(result[1] for result in results)
    print(f"{sum(counted.values()):,} files: {dict(counted)}; longest {longest:.2f} s; {len(failures)} failures")
    print("\n".join(failures[:40]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
