"""Rank of a large sparse Jacobian, body by body, without a dense matrix of the whole.

Bodies are eliminated in an order with little fill.  The front of a body holds all rows left that touch it, F = [F₁
F₂], its
own six columns first.  From the singular values of F₁ = U S Vᵀ: r of them above the cut, so r equations determine r
motions of
this body from those of its neighbours, 6 − r motions of it disturb nothing, and the rows Uᵀ[r:] F₂ remain for the
neighbours.
Then nullity(J) = Σ (6 − r) and rank(J) = Σ r.  Every step is orthogonal, so nothing is squared and no digit is lost.

Which equations are redundant is asked of a random vector projected on the left null space, y = z − J J⁺z: rows where y
vanishes take part in no dependence.  The others fall into small groups, which are then taken one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cardan.solvers import abi
from cardan.solvers.linear import elimination_order
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

PROJECTION_DAMPING = 1e-11  # of the scaled normal equations; two refinements take its effect back
INVOLVED = 1e-4  # of the largest |y|: rows below take part in no dependence; the damping leaves some 1e-6
VECTORS = 3  # random vectors: a row that takes part can be small in one of them by chance
SEED = 20240229


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one constraint: their numbers, the blocks they touch, their entries (rows × unknowns of the blocks)."""

    rows: list[int]
    touched: list[int]
    entries: FloatArray


def blocks(problem: Problem, q: FloatArray, kept: set[int]) -> list[Block]:
    """The scaled Jacobian at q, constraint by constraint, with only the rows in ``kept``."""
    _, entries = problem.entries(q)
    structure = problem.structure.tolist()
    rows, columns = problem.scales[: problem.rows], problem.scales[problem.rows :]
    offsets = structure[structure[abi.OFFSETS] :]
    found = []
    at = abi.HEADER
    for _ in range(structure[abi.CONSTRAINTS]):
        row, count, start, slots = structure[at : at + 4]
        touched = structure[at + 4 : at + 4 + slots]
        scale = np.concatenate([columns[offsets[b] : offsets[b + 1]] for b in touched])
        matrix = entries[start : start + count * scale.size].reshape(count, scale.size)
        mine = [i for i in range(count) if row + i in kept]
        if mine:
            scaled = matrix[mine] * scale * rows[[row + i for i in mine]][:, None]
            found.append(Block([row + i for i in mine], touched, scaled))
        at += 4 + slots
    return found


def pivots(problem: Problem, parts: list[Block], cut: float) -> tuple[int, FloatArray]:
    """Rank, and the singular values of all F₁, largest first, padded with zeros for motions that nothing resists."""
    order = elimination_order(problem.structure)
    position = np.empty(order.size, dtype=np.int64)
    position[order] = np.arange(order.size)
    offsets = problem.structure[problem.structure[abi.OFFSETS] :][: order.size + 1]
    widths = np.diff(offsets)[order].tolist()
    waiting: list[list[tuple[list[int], FloatArray]]] = [[] for _ in widths]
    for part in parts:
        places = [int(position[b]) for b in part.touched]
        waiting[min(places)].append((places, part.entries))
    rank = 0
    values = []
    for k, width in enumerate(widths):
        if not waiting[k]:
            values.append(np.zeros(width))
            continue
        front, rest = _front(waiting[k], widths)
        waiting[k] = []
        u, s, _ = np.linalg.svd(front[:, :width], full_matrices=True)
        s = np.concatenate([s, np.zeros(width - s.size)])
        values.append(s)
        r = int((s > cut).sum())
        rank += r
        left = u[:, r:].T @ front[:, width:]
        if left.shape[0] > left.shape[1]:
            left = np.asarray(np.linalg.qr(left, mode="r"))
        if left.size:
            waiting[rest[0]].append((rest, left))
    return rank, np.sort(np.concatenate(values))[::-1]


def _front(parts: list[tuple[list[int], FloatArray]], widths: list[int]) -> tuple[FloatArray, list[int]]:
    """All rows that wait, side by side in the columns of all bodies they touch; and those bodies but the first."""
    places = sorted({place for touched, _ in parts for place in touched})
    starts = dict(zip(places, np.concatenate([[0], np.cumsum([widths[p] for p in places])]).tolist(), strict=False))
    front = np.zeros((sum(len(m) for _, m in parts), sum(widths[p] for p in places)))
    row = 0
    for touched, matrix in parts:
        column = 0
        for place in touched:
            width = widths[place]
            front[row : row + len(matrix), starts[place] : starts[place] + width] = matrix[:, column : column + width]
            column += width
        row += len(matrix)
    return front, places[1:]


def involved(problem: Problem, parts: list[Block]) -> list[list[Block]]:
    """Groups of rows that take part in a dependence, as blocks; rows of two groups touch no body in common."""
    y = np.max([np.abs(_left_null(problem, parts, SEED + i)) for i in range(VECTORS)], axis=0)
    cut = INVOLVED * float(np.abs(y).max(initial=0.0))
    chosen = []
    for part in parts:
        mine = [i for i, row in enumerate(part.rows) if abs(y[row]) > cut]
        if mine:
            chosen.append(Block([part.rows[i] for i in mine], part.touched, part.entries[mine]))
    leader: dict[int, int] = {}

    def find(b: int) -> int:
        while leader.setdefault(b, b) != b:
            leader[b] = leader[leader[b]]
            b = leader[b]
        return b

    for part in chosen:
        for b in part.touched[1:]:
            leader[find(b)] = find(part.touched[0])
    groups: dict[int, list[Block]] = {}
    for part in chosen:
        groups.setdefault(find(part.touched[0]), []).append(part)
    return list(groups.values())


def _left_null(problem: Problem, parts: list[Block], seed: int) -> FloatArray:
    """y = z − J J⁺z for a random z; zero, up to rounding, on rows that depend on no others."""
    structure = problem.structure
    entries = np.zeros(int(structure[abi.JACOBIAN_SIZE]))
    z = np.zeros(problem.rows)
    rng = np.random.default_rng(seed)
    starts = {}
    at = abi.HEADER
    table = structure.tolist()
    for _ in range(table[abi.CONSTRAINTS]):
        row, count, start, slots = table[at : at + 4]
        for i in range(count):
            starts[row + i] = (start, i)
        at += 4 + slots
    for part in parts:
        width = part.entries.shape[1]
        for row, values in zip(part.rows, part.entries, strict=True):
            start, i = starts[row]
            entries[start + i * width : start + (i + 1) * width] = values
            z[row] = rng.normal()
    y = z
    for _ in range(3):  # each pass projects what the damping of the last one left
        y = problem.project(entries, y, PROJECTION_DAMPING)
    return y


def dense(group: list[Block], offsets: IntArray) -> tuple[list[int], FloatArray]:
    """Row numbers of a group in ascending order, and its rows as a dense matrix over the bodies they touch."""
    bodies = sorted({b for part in group for b in part.touched})
    widths = [int(offsets[b + 1] - offsets[b]) for b in bodies]
    starts = dict(zip(bodies, np.concatenate([[0], np.cumsum(widths)]).tolist(), strict=False))
    numbered = []
    for part in group:
        for row, values in zip(part.rows, part.entries, strict=True):
            line = np.zeros(sum(widths))
            column = 0
            for b in part.touched:
                width = int(offsets[b + 1] - offsets[b])
                line[starts[b] : starts[b] + width] = values[column : column + width]
                column += width
            numbered.append((row, line))
    numbered.sort(key=lambda pair: pair[0])
    return [row for row, _ in numbered], np.array([line for _, line in numbered])
