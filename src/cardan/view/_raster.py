"""Triangles and lines into a picture with a depth per pixel.

A pixel (x, y) of a triangle has the depth z = Σ wₖ zₖ with the barycentric weights wₖ; it is drawn if it is nearer than
what was drawn there.  Reads vertices in pixels and depths, colours per corner; writes ``image`` (rows, columns, 3) and
``depth`` (rows, columns).
"""

from __future__ import annotations

from cardan.kernel.jit import jit


@jit
def fill(points, normals, faces, color, light, image, depth):
    """Shade and draw faces; points: x, y [pixels] and z (larger is farther), shape (n, 3); normals in view axes.

    color: red, green, blue, opacity.  What is not opaque hides nothing, so it must be drawn last.
    """
    rows, columns = depth.shape
    for f in range(len(faces)):
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        ax, ay, bx, by, cx, cy = points[i, 0], points[i, 1], points[j, 0], points[j, 1], points[k, 0], points[k, 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area >= 0.0:  # seen from behind: y points down
            continue
        left, right = max(int(min(ax, bx, cx)), 0), min(int(max(ax, bx, cx)) + 1, columns - 1)
        top, bottom = max(int(min(ay, by, cy)), 0), min(int(max(ay, by, cy)) + 1, rows - 1)
        for y in range(top, bottom + 1):
            for x in range(left, right + 1):
                px, py = x + 0.5, y + 0.5
                u = ((bx - px) * (cy - py) - (by - py) * (cx - px)) / area
                v = ((cx - px) * (ay - py) - (cy - py) * (ax - px)) / area
                w = 1.0 - u - v
                if u < -1e-9 or v < -1e-9 or w < -1e-9:
                    continue
                z = u * points[i, 2] + v * points[j, 2] + w * points[k, 2]
                if z >= depth[y, x]:
                    continue
                nx = u * normals[i, 0] + v * normals[j, 0] + w * normals[k, 0]
                ny = u * normals[i, 1] + v * normals[j, 1] + w * normals[k, 1]
                nz = u * normals[i, 2] + v * normals[j, 2] + w * normals[k, 2]
                n = (nx * nx + ny * ny + nz * nz) ** 0.5 + 1e-30
                nx, ny, nz = nx / n, ny / n, nz / n
                d = nx * light[0] + ny * light[1] + nz * light[2]
                shade = 0.46 + 0.12 * ny + 0.18 * nz + 0.34 * max(d, 0.0)  # sky, camera light, and one lamp
                half = max(d * 0.5 + nz * 0.5, 0.0)
                shine = 0.16 * half**24
                for c in range(3):
                    image[y, x, c] += color[3] * (min(color[c] * shade + shine, 1.0) - image[y, x, c])
                if color[3] == 1.0:
                    depth[y, x] = z


@jit
def draw_lines(points, edges, color, bias, image, depth):
    """Draw edges one pixel wide, blended with ``color[3]``; a pixel may be behind the surface by ``bias``."""
    rows, columns = depth.shape
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        dx, dy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
        steps = int(max(abs(dx), abs(dy))) + 1
        for s in range(steps + 1):
            t = s / steps
            x, y = int(points[i, 0] + t * dx), int(points[i, 1] + t * dy)
            if x < 0 or y < 0 or x >= columns or y >= rows:
                continue
            z = points[i, 2] + t * (points[j, 2] - points[i, 2])
            if z - bias <= depth[y, x]:
                for c in range(3):
                    image[y, x, c] += color[3] * (color[c] - image[y, x, c])


@jit
def fill_mask(points, faces, mask):
    """Set the pixels of triangles to 1, from whichever side they are seen."""
    rows, columns = mask.shape
    for f in range(len(faces)):
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        ax, ay, bx, by, cx, cy = points[i, 0], points[i, 1], points[j, 0], points[j, 1], points[k, 0], points[k, 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area == 0.0:
            continue
        left, right = max(int(min(ax, bx, cx)), 0), min(int(max(ax, bx, cx)) + 1, columns - 1)
        top, bottom = max(int(min(ay, by, cy)), 0), min(int(max(ay, by, cy)) + 1, rows - 1)
        for y in range(top, bottom + 1):
            for x in range(left, right + 1):
                px, py = x + 0.5, y + 0.5
                u = ((bx - px) * (cy - py) - (by - py) * (cx - px)) / area
                v = ((cx - px) * (ay - py) - (cy - py) * (ax - px)) / area
                if u >= 0.0 and v >= 0.0 and u + v <= 1.0:
                    mask[y, x] = 1.0
