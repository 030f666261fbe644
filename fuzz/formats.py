"""Mutated files of other programs (URDF, MJCF, STL, OBJ, PLY, GLB), and files made to exhaust memory or time.

Each must be read or refused with an error that names the file, within the limits below.  While a file is read, an audit
hook refuses code, processes, connections, and the opening of any other file.

    python fuzz/formats.py --cases 100000 --jobs 2
    python fuzz/formats.py --bombs
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import cardan as cd
from cardan.files import mjcf, urdf
from cardan.shapes import box

SECONDS = 1.0  # of processor time, for one file
MEMORY = 300  # MB, for one file
FORBIDDEN = ("exec", "compile", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.")
LOADERS: dict[str, Callable[[Path], Any]] = {
    **{suffix: cd.load for suffix in (".toml", ".json")},
    **{".urdf": urdf.load, ".xml": mjcf.load},
    **{suffix: cd.shapes.mesh for suffix in (".stl", ".obj", ".ply", ".glb")},
}
WORDS = (b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"\0", b"1e999", b"nan", b"-1", b"4294967295", b"1e308",
         b"\xff\xfe", b"../../../../etc/passwd",
         b'"uri":"/etc/passwd",', b"mtllib /etc/passwd\n", b"<a>" * 300, b"9" * 400,
         b'"count":999999999,', b"element vertex 999999999999\n", b"f 1 2 3 4 5 6 7 -1\n", b"[" * 2000)  # fmt: skip


# -- files to mutate ---------------------------------------------------------------------------------------------------

URDF = b"""<?xml version="1.0"?><robot name="r"><link name="base"/><link name="arm"><inertial><origin xyz="0 0 1"/>
<mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><link name="tip"/>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 1" rpy="0.1 0 0"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="1" velocity="1"/><dynamics damping="1" friction="2"/></joint>
<joint name="k" type="prismatic"><parent link="arm"/><child link="tip"/><mimic joint="j" multiplier="2"/>
<limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>"""
MJCF = b"""<mujoco model="m"><compiler angle="degree"/><option gravity="0 0 -9"/><default><joint damping="1"/></default>
<worldbody><body name="a" pos="0 0 1" euler="0 10 0"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<joint name="j" type="hinge" axis="0 1 0" range="-90 90"/><site name="s" pos="1 0 0"/><body name="b" pos="1 0 0">
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint name="k" type="slide"/><joint name="l" type="ball"/></body>
</body></worldbody><equality><connect body1="a" body2="b" anchor="1 0 0"/></equality></mujoco>"""


def glb(description: dict[str, Any] | bytes, binary: bytes = b"") -> bytes:
    """A GLB file of a description and a buffer."""
    text = description if isinstance(description, bytes) else json.dumps(description).encode()
    text += b" " * (-len(text) % 4)
    parts = struct.pack("<II", len(text), 0x4E4F534A) + text
    parts += struct.pack("<II", len(binary), 0x004E4942) + binary if binary else b""
    return b"glTF" + struct.pack("<II", 2, 12 + len(parts)) + parts


def meshes() -> dict[str, bytes]:
    """A box in each form of each format, written here."""
    vertices, faces = (np.asarray(one) for one in box(1.0, 2.0, 3.0).triangles())
    corners = vertices[faces].astype("<f4")
    rows = np.zeros(len(faces), dtype=[("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")])
    rows["v"] = corners
    text = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in one)
        + "endloop\nendfacet\n"
        for one in corners.tolist()
    )
    obj = "mtllib a.mtl\n" + "".join(f"v {x} {y} {z}\n" for x, y, z in vertices.tolist())
    obj += "vn 0 0 1\n" + "".join(f"f {a + 1}//1 {b + 1}//1 {c + 1}//1\n" for a, b, c in faces.tolist())
    head = f"element vertex {len(vertices)}\nproperty float x\nproperty float y\nproperty float z\n"
    head += f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    made = {
        "binary.stl": b"\0" * 80 + struct.pack("<I", len(faces)) + rows.tobytes(),
        "text.stl": f"solid box\n{text}endsolid box\n".encode(),
        "part.obj": obj.encode(),
        "text.ply": f"ply\nformat ascii 1.0\n{head}".encode()
        + "".join(f"{x} {y} {z}\n" for x, y, z in vertices.tolist()).encode()
        + "".join(f"3 {a} {b} {c}\n" for a, b, c in faces.tolist()).encode(),
    }
    for order, name in (("<", "little"), (">", "big")):
        listed = np.zeros(len(faces), dtype=[("n", "u1"), ("i", f"{order}i4", 3)])
        listed["n"], listed["i"] = 3, faces
        content = f"ply\nformat binary_{name}_endian 1.0\n{head}".encode()
        made[f"{name}.ply"] = content + vertices.astype(f"{order}f4").tobytes() + listed.tobytes()
    points, indices = vertices.astype("<f4").tobytes(), faces.astype("<u4").tobytes()
    views = [{"buffer": 0, "byteOffset": 0, "byteLength": len(points)},
             {"buffer": 0, "byteOffset": len(points), "byteLength": len(indices)}]  # fmt: skip
    accessors = [{"bufferView": 0, "componentType": 5126, "count": len(vertices), "type": "VEC3"},
                 {"bufferView": 1, "componentType": 5125, "count": faces.size, "type": "SCALAR"}]  # fmt: skip
    nodes = [{"children": [1], "rotation": [0, 0, 0, 1]}, {"mesh": 0, "translation": [0, 0, 1], "scale": [1, 1, 1]}]
    made["part.glb"] = glb(
        {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes, "accessors": accessors,
         "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}], "bufferViews": views,
         "buffers": [{"byteLength": len(points) + len(indices)}]},
        points + indices,
    )  # fmt: skip
    return made


def seeds() -> dict[str, bytes]:
    """Files to mutate, by name."""
    return {"robot.urdf": URDF, "model.xml": MJCF, **meshes()}


def mutated(rng: random.Random, content: bytes) -> bytes:
    """The content with one to four changes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(content) + 1)
        match rng.randrange(7):
            case 0:
                content = content[:at]
            case 1:
                content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
            case 2:
                content = content[:at] + content[at + rng.randrange(1, 20) :]
            case 3:
                content = content[:at] + rng.choice(WORDS) + content[at + rng.choice((0, 4)) :]
            case 4:
                other = rng.randrange(len(content) + 1)
                content = content[:at] + content[other : other + rng.randrange(1, 200)] + content[at:]
            case 5:
                number = struct.pack("<I", rng.choice((0, 1, 2**31 - 1, 2**32 - 1, rng.randrange(2**32))))
                content = content[:at] + number + content[at + 4 :]
            case _:
                places = [k for k in range(at, min(at + 400, len(content))) if 48 <= content[k] <= 57]
                if places:
                    k = rng.choice(places)
                    content = content[:k] + rng.choice((b"9", b"0", b"-1", b"99999999999", b"1e300")) + content[k + 1 :]
    return content


# -- files made to exhaust memory or time ------------------------------------------------------------------------------


def bombs() -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Files by what they do: a name of the file, and a function that makes its content."""
    million = 10**6
    head = b"cardan = 2\n"

    def instances(count: int, points: int) -> bytes:
        one = json.loads(meshes()["part.glb"][20:].partition(b"\0")[0].rpartition(b"}")[0] + b"}")
        one["nodes"] = [{"mesh": 0}] * count
        one["scenes"] = [{"nodes": list(range(count))}]
        many = np.zeros((points, 3), dtype="<f4").tobytes()
        one["accessors"] = [{"bufferView": 0, "componentType": 5126, "count": points, "type": "VEC3"}]
        one["meshes"] = [{"primitives": [{"attributes": {"POSITION": 0}}]}]
        one["bufferViews"] = [{"buffer": 0, "byteLength": len(many)}]
        return glb(one, many)

    def triangles(count: int) -> bytes:
        rows = np.zeros((count, 50), dtype=np.uint8)
        rows[:, :48] = np.random.default_rng(1).random((count, 12), dtype=np.float32).view(np.uint8)
        return b"\0" * 80 + struct.pack("<I", count) + rows.tobytes()

    def ply(count: int, listed: bytes) -> bytes:
        text = b"ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
        text += b"property float z\nelement face %d\nproperty list uchar uchar vertex_indices\nend_header\n" % count
        return text + bytes(12) + listed

    return {
        "one key of 20,000 parts": ("a.toml", lambda: head + b"a." * 19_999 + b"a = 1\n"),
        "one header of 20,000 parts": ("a.toml", lambda: head + b"[" + b"a." * 19_999 + b"a]\n"),
        "quoted key of 20,000 parts": ("a.toml", lambda: head + b'"a" . ' * 19_999 + b"a = 1\n"),
        "60 MB of keys": ("a.toml", lambda: head + b"".join(b"k%d=1\n" % k for k in range(6 * million))),
        "0.6 MB of keys": ("a.toml", lambda: head + b"".join(b"k%d=1\n" % k for k in range(60_000))),
        "1 MB of keys of 16 parts": (
            "a.toml", lambda: head + b"".join(b"k%d" % k + b".a" * 15 + b"=1\n" for k in range(26_000))),
        "0.6 MB of empty tables": ("a.toml", lambda: head + b"a=[" + b"{}," * 199_000 + b"]\n"),
        "lists in lists": ("a.toml", lambda: head + b"a=" + b"[" * 400_000),
        "tables in tables": ("a.toml", lambda: head + b"a=" + b"{a=" * 100_000),
        "6 MB of numbers": ("a.toml", lambda: head + b"[bodies.a]\nposition = [" + b"1.0, " * 1_240_000 + b"1]\n"),
        "23 MB in one string": ("a.toml", lambda: head + b'name = "' + b"a" * 23 * million + b'"\n'),
        "unclosed strings": ("a.toml", lambda: head + b'a = """' + b'\\"""' * 140_000),
        "wrong bodies": ("a.toml", lambda: head + b"".join(b"[bodies.b%d]\npos = 1\n" % k for k in range(10**5))),
        "hashes of comments": ("a.toml", lambda: head + b"#" * 23 * million),
        "21 MB of lists": ("a.json", lambda: b'{"cardan": 2, "a": [' + b"[]," * 7 * million + b"[]]}"),
        "2 MB of lists": ("a.json", lambda: b'{"cardan": 2, "a": [' + b"[]," * 600_000 + b"[]]}"),
        "deep lists": ("a.json", lambda: b'{"a":' * million),
        "one long integer": ("a.json", lambda: b'{"cardan": ' + b"9" * 10 * million + b"}"),
        "50,000 keys": ("a.json", lambda: b'{"cardan": 2, ' + b",".join(b'"k%d":0' % k for k in range(50_000)) + b"}"),
        "billion laughs": ("a.urdf", lambda: b"<!DOCTYPE r [<!ENTITY a '" + b"l" * 100 + b"'>" + b"".join(
            b"<!ENTITY a%d '%s'>" % (k, (b"&a%d;" % (k - 1) if k else b"&a;") * 10) for k in range(9))
            + b"]><robot>&a8;</robot>"),
        "billion laughs in UTF-16": (
            "a.urdf", lambda: "<!DOCTYPE r [<!ENTITY a 'lol'>]><robot name='&a;'/>".encode("utf-16-le")),
        "6 MB of elements": ("a.xml", lambda: b"<mujoco>" + b"<a/>" * 1_400_000 + b"</mujoco>"),
        "deep elements": ("a.xml", lambda: b"<mujoco>" + b"<a>" * 1_900_000),
        "one element of 500,000 attributes": (
            "a.xml", lambda: b"<mujoco " + b" ".join(b"a%d=''" % k for k in range(500_000)) + b"/>"),
        "one long attribute": ("a.xml", lambda: b"<mujoco><option gravity='" + b"1 " * 2_900_000 + b"'/></mujoco>"),
        "bodies of one name": (
            "a.xml", lambda: b"<mujoco><worldbody>" + b"<body name='a'/>" * 90_000 + b"</worldbody></mujoco>"),
        "bodies without a name": (
            "a.xml", lambda: b"<mujoco><worldbody>" + b"<body/>" * 90_000 + b"</worldbody></mujoco>"),
        "links": (
            "a.urdf",
            lambda: b"<robot name='r'>" + b"".join(b"<link name='l%d'/>" % k for k in range(99_000)) + b"</robot>"),
        "a chain of links": ("a.urdf", lambda: b"<robot name='r'><link name='l0'/>" + b"".join(
            b"<link name='l%d'/><joint name='j%d' type='revolute'><parent link='l%d'/><child link='l%d'/></joint>"
            % (k, k, k - 1, k) for k in range(1, 20_000)) + b"</robot>"),
        "64 MB of text": ("a.stl", lambda: b"solid a\n" + b"facet normal 0 0 0\n" * 3_000_000),
        "claims of 2³² triangles": ("a.stl", lambda: b"\0" * 80 + b"\xff" * 4 + bytes(1000)),
        "12 MB of facets": ("a.stl", lambda: b"solid a\n" + (b"facet normal 0 0 0 outer loop vertex 0 0 0 vertex 0 1 0 "
                            b"vertex 1 0 0 endloop endfacet\n") * 115_000),
        "400,000 triangles": ("a.stl", lambda: triangles(400_000)),
        "more triangles": ("a.stl", lambda: triangles(800_000)),
        "a polygon of 10⁶ corners": ("a.obj", lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf" + b" 1 2 3" * 10**6),
        "a polygon of 750,000 corners": ("a.obj", lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf" + b" 1 2 3" * 250_000),
        "16 MB of vertices": ("a.obj", lambda: b"v 0 0 0\n" * 2_000_000),
        "249,000 faces": ("a.obj", lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\n" + b"f 1 2 3\n" * 249_000),
        "claims of 10¹² faces": ("a.ply", lambda: ply(10**12, b"\3\0\0\0")),
        "claims of 10¹⁵ vertices": ("a.ply", lambda: ply(1, b"").replace(b"vertex 1\n", b"vertex 999999999999999\n")),
        "an element without properties": (
            "a.ply", lambda: b"ply\nformat ascii 1.0\nelement a 999999999999\nend_header\n"),
        "400,000 empty faces": ("a.ply", lambda: ply(400_000, bytes(400_000))),
        "400,000 faces": ("a.ply", lambda: ply(400_000, b"\3\0\0\0" * 400_000)),
        "4 MB of faces in text": (
            "a.ply", lambda: ply(499_000, b"").replace(b"binary_little_endian", b"ascii")[:-12]
            + b"0 0 0\n" + b"3 0 0 0\n" * 499_000),
        "16 MB of empty faces": ("a.ply", lambda: ply(16 * million, bytes(16 * million))),
        "faces of 255 corners": ("a.ply", lambda: ply(250_000, (b"\xff" + bytes(255)) * 250_000)),
        "a scene of 10⁹ triangles": ("a.glb", lambda: instances(9_000, 300_000)),
        "10,000 nodes": ("a.glb", lambda: instances(10_000, 99)),
        "4 MB of tables": ("a.glb", lambda: glb(b'{"nodes":[' + b"{}," * 1_300_000 + b"{}]}")),
        "claims of 10⁹ values": ("a.glb", lambda: meshes()["part.glb"].replace(b'"count": 36', b'"count": 99')),
    }  # fmt: skip


# -- judging -----------------------------------------------------------------------------------------------------------

_watched: Path | None = None


def _audit(event: str, arguments: Any) -> None:
    if _watched is None:
        return
    if event.startswith(FORBIDDEN) or (event == "import" and arguments[0] not in sys.modules):
        raise AssertionError(f"a file caused {event}: {str(arguments)[:200]}")
    if (
        event == "open"
        and not isinstance(arguments[0], int)
        and str(arguments[0]) not in (str(_watched), str(_watched.parent), _watched.name)
    ):
        raise AssertionError(f"a file caused the opening of {arguments[0]!r}")


def judge(path: Path) -> tuple[str, float]:
    """Whether a file is "valid" or "refused", and the seconds it took; AssertionError if it is neither."""
    global _watched  # noqa: PLW0603  # an audit hook cannot be removed
    began = time.process_time()
    try:
        _watched = path
        try:
            LOADERS[path.suffix](path)
        finally:
            _watched = None
    except cd.ModelError as error:
        text = str(error)
        assert len(text) < 20_000, f"a message of {len(text):,} characters"
        assert text.isprintable() or path.suffix in (".toml", ".json"), (
            f"a message that cannot be printed: {text!r:.80}"
        )
        return "refused", time.process_time() - began
    return "valid", time.process_time() - began


def peak() -> float:
    """The largest memory of this process [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def run(first: int, cases: int) -> tuple[Counter[str], float, list[str]]:
    """Cases of consecutive numbers: how many were valid, the longest time, and failures."""
    files = seeds()
    counted: Counter[str] = Counter()
    longest, failures = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():  # also loads every module, before imports are watched
            path = Path(folder) / name
            path.write_bytes(content)
            assert judge(path)[0] == "valid", name
        sys.addaudithook(_audit)
        names, before = list(files), peak()
        for k in range(first, first + cases):
            rng = random.Random(k)
            path = Path(folder) / rng.choice(names)
            path.write_bytes(mutated(rng, files[path.name]))
            try:
                verdict, seconds = judge(path)
            except BaseException as error:  # whatever it is, it is a failure
                if isinstance(error, KeyboardInterrupt):
                    raise
                failures.append(f"case {k} ({path.name}): {type(error).__name__}: {str(error)[:300]}")
                continue
            counted[f"{path.suffix} {verdict}"] += 1
            longest = max(longest, seconds)
            if seconds > SECONDS or peak() - before > MEMORY:
                failures.append(f"case {k} ({path.name}): {seconds:.2f} s, {peak() - before:.0f} MB")
                before = peak()
    return counted, longest, failures


def explode(name: str) -> tuple[str, float, float]:
    """The verdict on a file of :func:`bombs`, its seconds, and its megabytes, in a process of its own."""
    results: Any = multiprocessing.get_context("fork").SimpleQueue()
    suffix, make = bombs()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / suffix
        child = os.fork()
        if not child:  # makes the file, so that its memory is not that of the reader
            path.write_bytes(make())
            os._exit(0)
        os.waitpid(child, 0)
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, (10, 11))
            try:
                before = peak()
                verdict, seconds = judge(path)
                results.put((verdict, seconds, peak() - before))
            except BaseException as error:  # whatever it is, it is a failure
                results.put((f"{type(error).__name__}: {str(error)[:300]}", 0.0, 0.0))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        found: tuple[str, float, float] = results.get() if status == 0 else (f"status {status}", 0.0, 0.0)
        return found


def explode_all() -> int:
    """All of :func:`bombs`, with their figures; the exit status."""
    failed = 0
    for name, (file, _) in bombs().items():
        verdict, seconds, megabytes = explode(name)
        is_bad = verdict not in ("refused", "valid") or seconds > SECONDS or megabytes > MEMORY
        failed += is_bad
        print(f"{'FAILED ' if is_bad else ''}{file} {name}: {verdict}, {seconds:.2f} s, {megabytes:.0f} MB", flush=True)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--bombs", action="store_true", help="files made to exhaust memory or time")
    args = parser.parse_args()
    if args.bombs:
        return explode_all()
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
