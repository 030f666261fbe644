"""Plot the results: time per problem by program, and growth with size."""

from __future__ import annotations

from pathlib import Path

from compare import OURS

OUR_COLOUR = "#c2410c"
COLOURS = {
    "CadQuery": "#1f3a5f",
    "OndselSolver": "#3f6ea3",
    "Drake": "#7fa6cf",
    "SolveSpace": "#bcd3ea",
    "Exudyn": "#4d4d4d",
    "CasADi IPOPT, least squares": "#8a8a8a",
    "CasADi IPOPT, constraints": "#c4c4c4",
}
SPARE_COLOUR = "#dddddd"
INK = "#333333"
LABELS = {
    "RSUR": "RSUR\nfour-bar",
    "planar 4R": "planar 4R\n(redundant)",
    "Stewart 6-distance": "Stewart,\nsix rods",
    "Stewart UPS": "Stewart,\nUPS legs",
    "chain 1000, bad": "chain of 1,000,\nrough start",
    "chain 1000, uniform": "chain of 1,000,\nrandom start",
}


def draw(figures: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {"font.size": 9, "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK}
    )
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11.5, 4.4), width_ratios=(2.6, 1), constrained_layout=True, dpi=150
    )
    _bars(left, figures["assembly"])
    _curves(right, figures["scale"])
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", which="major", color="#e6e6e6", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.minorticks_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def _bars(axes, assembly: dict[str, dict]) -> None:
    """Bars of median times; a percentage marks programs that did not solve all starts; no bar if none was solved."""
    present = {name for found in assembly.values() for name in found}
    names = [OURS, *(name for name in COLOURS if name in present)]
    names += sorted(present - set(names))
    width = 0.9 / max(len(found) for found in assembly.values())
    floor = 0.5 * min(f["median ms"] for found in assembly.values() for f in found.values())
    for name in names:
        colour = OUR_COLOUR if name == OURS else COLOURS.get(name, SPARE_COLOUR)
        label = name
        for x, found in enumerate(assembly.values()):
            if name not in found:
                continue
            f = found[name]
            here = [each for each in names if each in found]
            offset = (here.index(name) - (len(here) - 1) / 2) * width
            top = floor
            if f["solved"]:
                top = f["median ms"]
                axes.bar(x + offset, top - floor, width * 0.9, bottom=floor, color=colour, label=label)
                label = None
            if f["solved"] < f["starts"]:
                share = f"{100 * f['solved'] / f['starts']:.0f}%"
                axes.text(x + offset, top * 1.15, share, ha="center", va="bottom", rotation=90, fontsize=6.5, color=INK)
    axes.set_yscale("log")
    axes.set_ylim(floor, 4 * max(f["median ms"] for found in assembly.values() for f in found.values()))
    axes.set_xlim(-0.55, len(assembly) - 0.45)
    axes.yaxis.set_major_formatter(_time)
    axes.set_xticks(range(len(assembly)), [LABELS.get(name, name) for name in assembly])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("median time of one assembly")
    title = "Assembly far from the solution (percent of starts solved, where not all)"
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=7.5, loc="upper left", ncols=2, handlelength=1, handleheight=1)


def _time(milliseconds: float, _: int) -> str:
    if milliseconds < 1:
        return f"{1e3 * milliseconds:g} µs"
    return f"{milliseconds:g} ms" if milliseconds < 1e3 else f"{milliseconds / 1e3:g} s"


def _curves(axes, scale: dict[str, dict]) -> None:
    titles = {"chain": "closed chain", "loops": "with 10 % local loops"}
    styles = {"chain": ("-", "o", OUR_COLOUR), "loops": ("--", "s", "#1f3a5f")}
    for kind, found in scale.items():
        line, marker, colour = styles[kind]
        bodies = [case["bodies"] for case in found["cases"]]
        times = [case["iteration ms"] for case in found["cases"]]
        label = f"{titles[kind]}: N$^{{{found['exponent']:.2f}}}$"
        axes.loglog(bodies, times, line, marker=marker, markersize=4, color=colour, linewidth=1.4, label=label)
    axes.set_xlabel("bodies")
    axes.set_ylabel("time of one iteration")
    axes.yaxis.set_major_formatter(_time)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.set_title("Cardan, growth with size", loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
