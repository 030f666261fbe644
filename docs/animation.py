"""Make the moving picture of the README: ``python docs/animation.py`` (needs the extra ``plot``).

Two mechanisms of the gallery, a four-bar and the walking machine of 217 parts.  Their parts are scattered; the solver
assembles them, which is shown iteration by iteration; then the drivers move them through one turn of the crank.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from figures import COLOURS, FAINT, IMAGES, INK, points
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from PIL import Image

import cardan as cd
from cardan.math import euler
from gallery import jansen_leg, planar_4r, strandbeest

PATH = IMAGES / "motion.gif"
WIDTH, HEIGHT, DPI = 8.0, 3.1, 100  # inches, and dots per inch
SCATTERED, STANDING, TURN = 7, 5, 36  # frames of the start, of the assembled mechanism, of one turn of the crank
ITERATIONS = (8, 7, 4, 3, 2, 1, 1, 1)  # frames of each: the first ones move the parts farthest
DURATION = 65  # ms per frame
SHADES = 30  # colours of the palette in addition to those of the parts
ALMOST_WHITE = 245  # of 255: shades above it are dropped, so that the background stays pure white

FOUR_BAR_SEED, WALKER_SEED = 4, 2
APART, ROTATED = 0.5, 0.4  # m and rad: how far parts of the walker are scattered; four-bar: twice as far
ON_COUPLER = (1.3, 0.9, 0.0)  # m: the point of the coupler whose path is drawn
FOUR_BAR_SECONDS = 1.0  # of a turn of its crank
AZIMUTH, ELEVATION = np.radians((-28.0, 16.0))  # of the view of the walker
FADED = 0.72  # fraction of white in the colour of the layer at the back
GROUND_LINES = 12  # within the distance walked in one turn of the crank

Frames = list[cd.State]


def scattered(m: cd.Mechanism, apart: float, rotated: float, seed: int) -> cd.State:
    """Every part moved by up to ``apart`` [m] and rotated by up to ``rotated`` [rad] about each axis."""
    rng = np.random.default_rng(seed)
    poses = {
        name: (
            np.array(body.position) + rng.uniform(-apart, apart, 3),
            euler.retract(body.orientation, rng.uniform(-rotated, rotated, 3)),
        )
        for name, body in m.bodies.items()
    }
    return m.state.moved(poses)


def blended(a: cd.State, b: cd.State, part: float) -> cd.State:
    """The poses between two states: positions and rotations of each body are interpolated."""
    turn = euler.difference(a.quaternions, b.quaternions)
    positions = a.positions + part * (b.positions - a.positions)
    quaternions = euler.retract(a.quaternions, part * turn)
    return a.moved({name: (positions[k], quaternions[k]) for k, name in enumerate(a.names)})


def assembled(m: cd.Mechanism, start: cd.State) -> Frames:
    """Frames of an assembly: the start, the states after each iteration with frames in between, the result."""
    session = m.session(start, closed=False)
    states = [start]
    status = cd.SessionStatus.MOVING
    while status != cd.SessionStatus.IDLE:
        status = session.step()
        if status == cd.SessionStatus.STUCK:
            raise SystemExit(f"{m.name} does not assemble from this start")
        if session.cycles == len(states):
            states.append(session.state)
    if len(states) > len(ITERATIONS) + 1:
        raise SystemExit(f"{m.name} takes {len(states) - 1} iterations, more than the {len(ITERATIONS)} that are shown")
    frames = [start] * SCATTERED
    for a, b, count in zip(states[:-1], states[1:], ITERATIONS, strict=False):
        frames += [blended(a, b, 0.5 - 0.5 * np.cos(np.pi * k / count)) for k in range(1, count + 1)]
    frames += [states[-1]] * (SCATTERED + sum(ITERATIONS) + STANDING - len(frames))
    return frames


def moved(m: cd.Mechanism, start: cd.State, seconds: float) -> Frames:
    """One turn of the crank."""
    motion = m.move(np.linspace(0.0, seconds, TURN + 1), start)
    if not motion.ok:
        raise SystemExit(f"{m.name}: {motion.text()}")
    return list(motion.states[1:])


def four_bar() -> tuple[cd.Mechanism, Frames]:
    m = planar_4r.build()
    first = assembled(m, scattered(m, 2 * APART, 2 * ROTATED, FOUR_BAR_SEED))
    angle = m["A"].coordinate(first[-1])
    m.drive("motor", m["A"], lambda t: angle + 2 * cd.pi * t / FOUR_BAR_SECONDS)
    return m, first + moved(m, first[-1], FOUR_BAR_SECONDS)


def walker() -> tuple[cd.Mechanism, Frames]:
    m = strandbeest.build()
    first = assembled(m, scattered(m, APART, ROTATED, WALKER_SEED))
    wrong = [leg.prefix for _, leg in strandbeest.legs() if leg.sides(first[-1]) != jansen_leg.SIDES]
    if wrong:
        raise SystemExit(f"these legs are assembled on another branch: {wrong}")
    return m, first + moved(m, first[-1], strandbeest.DURATION)


def walked(frames: Sequence[cd.State]) -> np.ndarray:
    """Distance walked [m] at every frame: minus the displacement of the feet that are on the ground."""
    feet = np.array([[leg.foot(state) for _, leg in strandbeest.legs()] for state in frames])
    steps = np.diff(feet[:, :, 0], axis=0)
    down = feet[:-1, :, 1] < feet[:-1, :, 1].min(axis=1, keepdims=True) + strandbeest.DOWN
    mean = (steps * down).sum(axis=1) / down.sum(axis=1)
    return -np.concatenate([[0.0], np.cumsum(mean)])


def faded(colour: str, part: float) -> tuple[float, float, float]:
    """A colour mixed with a fraction ``part`` of white."""
    r, g, b = ((1.0 - part) * c + part for c in to_rgb(colour))
    return r, g, b


def draw_four_bar(axes, m: cd.Mechanism, states: Sequence[cd.State], k: int) -> None:
    """The links, and the path of a point of the coupler up to frame k."""
    still = len(states) - TURN
    if k >= still:
        path = np.array([state["coupler"].point(ON_COUPLER) for state in states[still - 1 : k + 1]])
        axes.plot(path[:, 0], path[:, 1], color=COLOURS[4], linewidth=2.0, solid_capstyle="round")
    state = states[k]
    shapes = {
        "crank": [(0.0, 0.0, 0.0), (planar_4r.CRANK, 0.0, 0.0)],
        "coupler": [(0.0, 0.0, 0.0), (planar_4r.COUPLER, 0.0, 0.0), ON_COUPLER],
        "rocker": [(0.0, 0.0, 0.0), (planar_4r.ROCKER, 0.0, 0.0)],
    }
    for colour, (name, local) in zip((COLOURS[1], COLOURS[0], COLOURS[2]), shapes.items(), strict=True):
        world = np.array([state[name].point(p) for p in local])
        axes.fill(
            world[:, 0],
            world[:, 1],
            facecolor=(*to_rgb(colour), 0.18),
            edgecolor=colour,
            linewidth=4.0,
            joinstyle="round",
        )
        axes.plot(
            world[:, 0], world[:, 1], "o", color="white", markeredgecolor=colour, markeredgewidth=1.8, markersize=7
        )
    axes.plot([0.0, planar_4r.BASE], [0.0, 0.0], "s", color=INK, markersize=7, zorder=0)
    if k >= still:
        x, y, _ = state["coupler"].point(ON_COUPLER)
        axes.plot(x, y, "o", color=COLOURS[4], markersize=7)
    axes.set(xlim=(-1.5, 4.3), ylim=(-1.4, 3.2), aspect="equal")


def projected(world: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Image coordinates and depth of world points; y is up."""
    right = np.array([np.cos(AZIMUTH), 0.0, np.sin(AZIMUTH)])
    towards = np.array([-np.sin(AZIMUTH) * np.cos(ELEVATION), np.sin(ELEVATION), np.cos(AZIMUTH) * np.cos(ELEVATION)])
    up = np.cross(towards, right)
    return np.stack([world @ right, world @ up], axis=-1), world @ towards


def draw_walker(axes, m: cd.Mechanism, state: cd.State, ground: float, gone: float, period: float) -> None:
    """Bodies from the back to the front, over a ground with lines that move back as the machine walks."""
    depth_of = (strandbeest.THROWS - 1) * strandbeest.LAYER
    z = np.array([-0.35, depth_of + 0.35])
    for i in range(-2 * GROUND_LINES, 2 * GROUND_LINES + 1):
        x = (i + 0.5) * period / GROUND_LINES - gone % (period / GROUND_LINES)
        if abs(x) < 1.55:
            line, _ = projected(np.array([(x, ground, z[0]), (x, ground, z[1])]))
            axes.plot(*line.T, color=FAINT, linewidth=0.8, alpha=min(1.0, 4 * (1.55 - abs(x))), zorder=0)
    outlines, colours, depths = [], [], []
    kinds = {"upper_rod": 3, "lower_rod": 6, "upper_triangle": 0, "rocker": 2, "back_rod": 4, "lower_triangle": 1}
    for name, local in points(m).items():
        if name in ("ground", "crankshaft"):
            continue
        world = np.array([state[name].point(p) for p in local])
        flat, depth = projected(world)
        kind = next(index for word, index in kinds.items() if name.endswith(word))
        back = np.clip(1.0 - depth.mean() / depth_of, 0.0, 1.0)
        outlines.append(flat)
        colours.append(faded(COLOURS[kind], FADED * back))
        depths.append(depth.mean())
    shaft = np.array([state["crankshaft"].point((0, 0, s)) for s in (z[0] / 2, depth_of - z[0] / 2)])
    axes.plot(*projected(shaft)[0].T, color=INK, linewidth=2.5, zorder=1)
    order = np.argsort(depths)
    axes.add_collection(
        PolyCollection(
            [outlines[i] for i in order],
            facecolors=[(*colours[i], 0.35) for i in order],
            edgecolors=[colours[i] for i in order],
            linewidths=1.5,
            joinstyle="round",
            zorder=2,
        )
    )
    axes.set(xlim=(-2.05, 1.75), ylim=(-1.55, 0.85), aspect="equal")


def status(number: int) -> str:
    """The caption of a frame."""
    ends = np.cumsum([SCATTERED, *ITERATIONS, STANDING])
    words = ["scattered", *(f"iteration {k + 1}" for k in range(len(ITERATIONS))), "assembled", "moving"]
    return words[int(np.searchsorted(ends, number, side="right"))]


def picture(number: int, four, beast, gone: np.ndarray) -> Image.Image:
    figure = plt.figure(figsize=(WIDTH, HEIGHT), dpi=DPI)
    left = figure.add_axes((0.0, 0.0, 0.40, 0.90))
    right = figure.add_axes((0.38, 0.0, 0.62, 0.90))
    draw_four_bar(left, *four, number)
    ground = min(leg.foot(state)[1] for state in beast[1][-TURN:] for _, leg in strandbeest.legs())
    moving = max(0, number - (len(beast[1]) - TURN) + 1)
    draw_walker(right, beast[0], beast[1][number], ground, gone[moving], gone[-1])
    for axes in (left, right):
        axes.set_axis_off()
    for x, title in ((0.19, "four-bar, 3 parts"), (0.72, "walking machine, 217 parts")):
        figure.text(x, 0.92, title, ha="center", color=INK, fontsize=12)
    figure.text(0.43, 0.92, status(number), ha="center", color=COLOURS[1], fontsize=12)
    figure.canvas.draw()
    image = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[:, :, :3].copy())
    plt.close(figure)
    return image


def palette_of(images: Sequence[Image.Image]) -> Image.Image:
    """One palette for all frames. It contains pure white, ink and the colours of the parts."""
    sample = Image.new("RGB", (images[0].width, images[0].height * len(images)))
    for k, image in enumerate(images):
        sample.paste(image, (0, k * image.height))
    found = np.reshape(sample.quantize(SHADES).getpalette()[: 3 * SHADES], (-1, 3))
    own = np.round(255 * np.array([to_rgb(name) for name in ("white", INK, *COLOURS)])).astype(int)
    made = Image.new("P", (1, 1))
    made.putpalette([*own.ravel().tolist(), *found[found.min(axis=1) < ALMOST_WHITE].ravel().tolist()])
    return made


def main() -> None:
    four, beast = four_bar(), walker()
    gone = walked(beast[1][-TURN - 1 :])
    images = [picture(k, four, beast, gone) for k in range(len(beast[1]))]
    palette = palette_of(images[:: len(images) // 4])
    frames = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    frames[0].save(PATH, save_all=True, append_images=frames[1:], duration=DURATION, loop=0, optimize=True)
    print(f"{PATH.name}: {len(frames)} frames, {PATH.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
