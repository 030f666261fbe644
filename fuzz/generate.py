"""Generate cases from (seed, index): the result is the same on every machine and in any order."""

from __future__ import annotations

import numpy as np

from fuzz import consistent, degenerate, disconnected, inconsistent, redundant
from fuzz.others import replace_by_new, replace_some
from fuzz.parameters import add_parameters

# Families, with their shares of the cases.
FAMILIES = {
    "consistent": (consistent.draw, 0.35),
    "redundant": (redundant.draw, 0.2),
    "inconsistent": (inconsistent.draw, 0.2),
    "disconnected": (disconnected.draw, 0.1),
    "degenerate": (degenerate.draw, 0.15),
}


def generate(seed, index):
    """The case with the given seed and index."""
    rng = np.random.default_rng([seed, index])
    names = list(FAMILIES)
    family = names[rng.choice(len(names), p=[FAMILIES[n][1] for n in names])]
    case = FAMILIES[family][0](rng)
    case.seed, case.index = seed, index
    if rng.random() < 0.1:
        _change_options(rng, case)
    replace_some(case, seed, index)
    replace_by_new(case, seed, index)
    add_parameters(case, seed, index)
    return case


def _change_options(rng, case):
    """Use another formulation or method; then only a correct verdict is required."""
    if rng.random() < 0.5:
        others = ["euler_parameters", "relative", "relative_euler_parameters"]
        case.options["formulation"] = str(rng.choice(others))
    if rng.random() < 0.5:
        case.options["method"] = str(rng.choice(["levenberg_marquardt", "newton", "hybrid", "gradient"]))
        case.options["max_iterations"] = 300
    if case.options and case.expect == "ok":
        case.expect = "any"
