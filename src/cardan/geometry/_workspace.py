"""Pieces of the workspace of a search, in floats: rows of both shapes, V, H, g, …; scratch of evaluators is last."""

ROWS_A, ROWS_B, V, H, G, FIXED, L, DX, Y, NORMAL, BOUNDS_A, BOUNDS_B, BOX, CLIPPED, FRAME, CHANGE, SYSTEM, SCRATCH = (
    0, 30, 60, 72, 88, 92, 96, 112, 116, 120, 124, 134, 144, 148, 161, 173, 189, 221,
)  # fmt: skip
MORE = 36  # floats of an enclosure besides the coefficients


def enclosing(n, m):
    """Floats that the enclosure of a shape with n × m coefficients per span needs."""
    return 4 * n * m + MORE + 4 * n + 4 * m
