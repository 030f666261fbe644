"""Rank and redundancy of a large sparse Jacobian, body by body, without a dense matrix of the whole.

Bodies are eliminated in an order with little fill.  The front of a body contains all remaining rows that involve it,
F = [F₁ F₂], its own six columns first.

Rank: of the singular values of F₁ = U S Vᵀ, r are above the cut.  So r equations determine r motions of this body from
those of its neighbours, 6 − r motions of it are free, and the rows Uᵀ[r:] F₂ remain for the neighbours.  Then
nullity(J) = Σ (6 − r) and rank(J) = Σ r.  Every step is orthogonal, and J is not squared, so no accuracy is lost.

Redundancy: the same by Gaussian elimination, which keeps the rows separate.  The pivot is the earliest row that is not
much smaller than the largest; rows that vanish depend on the pivots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cardan.coordinates.rates import shortening
from cardan.solvers.linear import block_offsets, constraints, elimination_order
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray

EARLY_PIVOT = 0.1  # of the largest entry: an earlier row with at least this is preferred


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of some equations: their numbers, the bodies they involve (by place in the elimination order), entries."""

    rows: list[int]
    places: list[int]
    entries: FloatArray


@dataclass(frozen=True, slots=True)
class Fronts:
    """A Jacobian before elimination: unknowns per place, and the blocks stored at the first place they involve."""

    widths: list[int]
    blocks: list[list[Block]]


def fronts(problem: Problem, q: FloatArray, kept: set[int]) -> Fronts:
    """The scaled Jacobian at q, with only the rows in ``kept``; long rows are shortened."""
    _, entries = problem.entries(q)
    rows, columns = problem.scales[: problem.rows], problem.scales[problem.rows :]
    offsets = block_offsets(problem.structure).tolist()
    order = elimination_order(problem.structure)
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    widths = [offsets[b + 1] - offsets[b] for b in order.tolist()]
    pending: list[list[Block]] = [[] for _ in widths]
    for constraint in constraints(problem.structure):
        row, count, start = constraint.first, constraint.rows, constraint.start
        touched = constraint.blocks.tolist()
        mine = [i for i in range(count) if row + i in kept]
        if mine:
            scale = np.concatenate([columns[offsets[b] : offsets[b + 1]] for b in touched])
            matrix = entries[start : start + count * scale.size].reshape(count, scale.size)
            numbers = [row + i for i in mine]
            places = [int(place[b]) for b in touched]
            scaled = matrix[mine] * scale * rows[numbers][:, None]
            pending[min(places)].append(Block(numbers, places, scaled * shortening(scaled)[:, None]))
    return Fronts(widths, pending)


def largest_block(parts: Fronts) -> float:
    """Largest norm of a block of rows: the scale for the cut."""
    return max((float(np.linalg.norm(b.entries)) for blocks in parts.blocks for b in blocks), default=0.0)


def pivots(parts: Fronts, cut: float) -> tuple[int, FloatArray]:
    """Rank, and the singular values of all F₁, largest first, with zeros for unconstrained motions."""
    pending = [list(blocks) for blocks in parts.blocks]
    rank = 0
    values = []
    for k, width in enumerate(parts.widths):
        if not pending[k]:
            values.append(np.zeros(width))
            continue
        front, _, rest = _front(pending[k], parts.widths)
        pending[k] = []
        u, s, _ = np.linalg.svd(front[:, :width], full_matrices=True)
        s = np.concatenate([s, np.zeros(width - s.size)])
        values.append(s)
        r = int((s > cut).sum())
        rank += r
        left = u[:, r:].T @ front[:, width:]
        if left.shape[0] > left.shape[1]:
            left = np.asarray(np.linalg.qr(left, mode="r"))
        if left.size:
            pending[rest[0]].append(Block([], rest, left))
    return rank, np.sort(np.concatenate(values))[::-1]


def redundant_rows(parts: Fronts, cut: float) -> list[int]:
    """Numbers of rows that depend on the others, ascending."""
    pending = [list(blocks) for blocks in parts.blocks]
    found: list[int] = []
    for k, width in enumerate(parts.widths):
        if not pending[k]:
            continue
        front, numbers, rest = _front(pending[k], parts.widths)
        pending[k] = []
        left = np.argsort(numbers, kind="stable")
        for _ in range(min(width, left.size)):
            own = np.abs(front[left, :width])
            largest = float(own.max(initial=0.0))
            if largest <= cut:
                break
            at = int(np.argmax(own.max(axis=1) >= EARLY_PIVOT * largest))  # the first: rows are in ascending order
            column = int(np.argmax(own[at]))
            pivot = front[left[at]]
            left = np.delete(left, at)
            front[left] -= np.outer(front[left, column] / pivot[column], pivot)
        size = np.abs(front[left, width:]).max(axis=1, initial=0.0)
        found += [numbers[i] for i in left[size <= cut]]
        remaining = left[size > cut]
        if remaining.size:
            pending[rest[0]].append(Block([numbers[i] for i in remaining], rest, front[remaining, width:]))
    return sorted(found)


def _front(blocks: list[Block], widths: list[int]) -> tuple[FloatArray, list[int], list[int]]:
    """All rows of the blocks, in the columns of all places they involve; their numbers; all places but the first."""
    places = sorted({place for block in blocks for place in block.places})
    starts = dict(zip(places, np.concatenate([[0], np.cumsum([widths[p] for p in places])]).tolist(), strict=False))
    front = np.zeros((sum(len(block.entries) for block in blocks), sum(widths[p] for p in places)))
    row = 0
    numbers: list[int] = []
    for block in blocks:
        end = row + len(block.entries)
        column = 0
        for place in block.places:
            width = widths[place]
            front[row:end, starts[place] : starts[place] + width] = block.entries[:, column : column + width]
            column += width
        numbers += block.rows
        row = end
    return front, numbers, places[1:]
