"""Files that others wrote: mutated, made to exhaust memory or time, or pointing to other files."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cardan as cd
from cardan import contents, shapes
from cardan.files import mjcf, reader, text, urdf
from fuzz import formats
from layers import sampled

SECRET = b"root:x:0:0:root:/root:/bin/sh\n" * 40


@sampled("name", list(formats.bombs()), keep=12)
def test_no_file_exhausts_memory_or_time(name: str) -> None:
    verdict, seconds, megabytes = formats.explode(name)
    assert verdict in ("refused", "valid")
    assert seconds < 2.0 * formats.SECONDS and megabytes < formats.MEMORY  # `fuzz/formats.py --bombs` has the bar


def test_a_bomb_goes_off_where_a_limit_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above can fail."""
    monkeypatch.setattr(text, "_check_nesting", lambda content: None)
    name = "one key of 20,000 parts"
    _, make = formats.bombs()[name]
    monkeypatch.setattr(formats, "bombs", lambda: {name: ("a.toml", lambda: make()[:11] + b"a." * 8_000 + b"a = 1\n")})
    verdict, _, megabytes = formats.explode(name)
    assert verdict.startswith(("status", "MemoryError")) or megabytes > 100


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.long)])
def test_mutated_files_are_read_or_refused(count: int) -> None:
    import subprocess

    code = f"import sys; sys.path.insert(0, {str(Path(formats.__file__).parents[1])!r})\n"
    code += f"from fuzz import formats; found = formats.run(0, {count}); print(found[2]); sys.exit(bool(found[2]))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )  # an audit hook stays
    assert done.returncode == 0, done.stdout + done.stderr


# -- meshes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(formats.meshes()))
def test_meshes_are_read_as_trimesh_reads_them(name: str, tmp_path: Path) -> None:
    """trimesh is another program; its vertices may be in another order."""
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / name
    path.write_bytes(formats.meshes()[name])
    ours = shapes.mesh(path)
    other = trimesh.load(path, force="mesh", process=False)
    other.merge_vertices(merge_tex=True, merge_norm=True)

    def corners(vertices: object, faces: object) -> list[object]:
        turned = [min(one[k:] + one[:k] for k in range(3)) for one in np.asarray(vertices)[np.asarray(faces)].tolist()]
        return sorted(turned)

    assert len(ours.vertices) == len(other.vertices) == 8
    assert corners(ours.vertices, ours.faces) == corners(other.vertices, other.faces)
    assert ours.properties().volume == pytest.approx(6.0)


def test_polygons_strips_fans_mirrors_and_negative_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 0\nf -5 -4 -3 -2\nl 1 2\nf 5//2 2/1/1 3/1\n"
    )
    found = shapes.mesh(tmp_path / "a.obj")
    assert found.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2]]  # the fifth vertex is the first
    points = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], dtype="<f4").tobytes()
    description = {
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": 48}],
        "buffers": [{"byteLength": 48}],
    }
    for mode, triangles in ((5, [[0, 1, 2], [2, 1, 3]]), (6, [[0, 1, 2], [0, 2, 3]]), (4, [[0, 1, 2]])):
        meshes = [{"primitives": [{"attributes": {"POSITION": 0}, "mode": mode}]}]
        for scale in (1.0, -1.0):
            nodes = [{"mesh": 0, "scale": [scale, 1, 1], "translation": [0, 0, 2]}]
            made = formats.glb({**description, "meshes": meshes, "nodes": nodes}, points)
            (tmp_path / "a.glb").write_bytes(made)
            found = shapes.mesh(tmp_path / "a.glb")
            wanted = np.frombuffer(points, "<f4").reshape(-1, 3)[triangles] * (scale, 1, 1) + (0, 0, 2)
            normals = [np.cross(b - a, c - a)[2] for a, b, c in found.vertices[found.faces]]
            assert sorted(map(sorted, found.vertices[found.faces].tolist())) == sorted(map(sorted, wanted.tolist()))
            flat = [np.cross(b - a, c - a)[2] * scale for a, b, c in wanted]
            assert np.sign(normals).tolist() == np.sign(flat).tolist()  # outside stays outside in a mirror


def test_no_mesh_reads_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GLB has the address of a buffer, OBJ that of materials: by neither comes what another file contains."""
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    description = {
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 9, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": 108}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
    }
    for uri in ("secret", "./secret", str(secret), secret.as_uri(), "http://127.0.0.1:1/secret"):
        (tmp_path / "a.glb").write_bytes(formats.glb({**description, "buffers": [{"byteLength": 108, "uri": uri}]}))
        with pytest.raises(
            cd.ModelError, match=r"buffer 0 is in another file, .*, which is not read; export one GLB file"
        ):
            shapes.mesh(tmp_path / "a.glb")
    import base64

    data = "data:application/octet-stream;base64," + base64.b64encode(struct.pack("<27f", *range(27))).decode()
    (tmp_path / "a.glb").write_bytes(formats.glb({**description, "buffers": [{"byteLength": 108, "uri": data}]}))
    assert len(shapes.mesh(tmp_path / "a.glb").faces) == 3
    opened: list[str] = []
    real = os.open
    monkeypatch.setattr(contents.os, "open", lambda path, *a, **k: opened.append(str(path)) or real(path, *a, **k))
    (tmp_path / "a.obj").write_text("mtllib secret\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\n")
    shapes.mesh(tmp_path / "a.obj")
    assert opened == [str(tmp_path / "a.obj")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.stl", b"\0" * 80 + b"\2\0\0\0" + bytes(50), "a binary one of 2 triangles.* has 184 bytes, and it has 134"),
        ("a.stl", b"solid\nfacet normal 0 0 1\nouter loop\nvertex 0 0 x", "triangle 1 is not written"),
        ("a.obj", b"v 0 0 0\nv 1 0\n", r"line 2: a vertex is b'v 1 0'"),
        ("a.obj", b"v 0 0 0\nf 1 1 2\n", "triangle 1 has corners .0, 0, 1.; there are 1 vertices"),
        ("a.obj", b"v 0 0 0\nf 1 1 0\n", "line 2: a face .* counted from 1"),
        ("a.obj", b"v 0 0 nan\nv 0 0 1\nv 1 0 0\nf 1 2 3\n", "vertex 1 is .*not finite"),
        ("a.obj", b"v 0 0 0\nv 0 0 0\nv 1 0 0\nf 1 2 3\n", "no triangles with an area"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex x\nend_header\n", "line 3: b'element vertex x'"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement \x1f 1\nproperty int a\nend_header\nx\n",
         r"line 3: b'element \\x1f 1'"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement face 2\nproperty list uchar int vertex_index\nend_header\n3 0 0 0 3",
         "fewer values than the 2 of the element 'face' in its header; number 2"),
        ("a.glb", formats.glb({"extensionsRequired": ["KHR_draco_mesh_compression"]}), "the extension 'KHR_draco"),
        ("a.glb", formats.glb({"nodes": [{"children": [0]}], "scenes": [{"nodes": [0]}]}), "node 0 .*two parents"),
        ("a.glb", formats.glb(b'{"nodes": 3}'), "its description is not that of a glTF scene"),
    ],
)  # fmt: skip
def test_wrong_meshes_are_refused_with_the_place(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(cd.ModelError, match=rf"the mesh '.*{name}' cannot be read: .*{message}"):
        shapes.mesh(tmp_path / name)


# -- what is no file, grows, or is elsewhere ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.cardan.toml", "a.json", "a.urdf", "a.xml", "a.stl", "a.obj", "a.ply", "a.glb"])
def test_devices_and_pipes_are_refused(name: str, tmp_path: Path) -> None:
    """A pipe would wait for its other end, and a device has no end."""
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(cd.ModelError, match="not a regular file"):
        formats.LOADERS[path.suffix](path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(cd.ModelError, match="not a regular file"):
        formats.LOADERS[path.suffix](path)


def test_no_more_is_read_than_the_limit(tmp_path: Path) -> None:
    """Also of files that have no size, as those of /proc, and of a folder."""
    (tmp_path / "a").write_bytes(b"x" * 1001)
    assert len(contents.read(tmp_path / "a", 1001)) == 1001
    with pytest.raises(cd.ModelError, match="larger than 1,000 bytes"):
        contents.read(tmp_path / "a", 1000)
    with pytest.raises(cd.ModelError, match="not a regular file"):
        contents.read(tmp_path, 1000)
    if sys.platform == "linux":
        with pytest.raises(cd.ModelError, match="larger than 10 bytes"):
            contents.read("/proc/self/status", 10)


def test_links_are_resolved_before_a_file_below_a_folder_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    (model / "real").mkdir(parents=True)
    elsewhere.mkdir()
    (model / "real" / "a").write_bytes(b"inside")
    (elsewhere / "a").write_bytes(SECRET)
    (model / "inner").symlink_to("real")
    (model / "outer").symlink_to(elsewhere)
    (model / "real" / "b").symlink_to(elsewhere / "a")
    for path in ("real/a", "inner/a", "inner/../real/a"):
        assert contents.read_below(model, path, 100) == b"inside"
    for path in ("outer/a", "real/b", "inner/b", "../elsewhere/a", str(model / "real" / "a")):
        with pytest.raises(cd.ModelError, match="must be in the folder of the model or below it"):
            contents.read_below(model, path, 100)
    # a folder becomes a link after its path was checked
    real = Path.is_file

    def swap(self: Path) -> bool:
        found = real(self)
        (model / "real").rename(model / "was")
        (model / "real").symlink_to(elsewhere)
        return found

    monkeypatch.setattr(Path, "is_file", swap)
    with pytest.raises(cd.ModelError, match="cannot be read"):
        contents.read_below(model, "real/a", 100)


# -- XML ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_text_without_a_mark_is_refused(encoding: str, tmp_path: Path) -> None:
    """The words of a declaration are not among its bytes."""
    path = tmp_path / "a.urdf"
    for declared in ("", '<?xml version="1.0"?>'):
        path.write_bytes(
            (declared + '<!DOCTYPE r [<!ENTITY b "c">]><robot name="&b;"><link name="l"/></robot>').encode(encoding)
        )
        with pytest.raises(cd.ModelError, match="NUL character"):
            urdf.load(path)


def test_a_declaration_is_refused_by_the_parser_and_not_by_its_letters(tmp_path: Path) -> None:
    path = tmp_path / "a.urdf"
    path.write_text('<robot name="r"><!-- <!DOCTYPE a> <!ENTITY b "c"> --><link name="l"/></robot>')
    assert urdf.load(path)[0].name == "r"
    path.write_text('<robot name="r">\n' + "<a>" * 300)
    with pytest.raises(cd.ModelError, match="line 2, is nested more than 200 deep"):
        urdf.load(path)


def test_the_axis_of_a_joint_may_have_any_length(tmp_path: Path) -> None:
    """Its square overflows, and does not divide it to zero."""
    path, descriptions = tmp_path / "a.urdf", []
    for axis in ("0 1 0", "0 1e300 0"):
        path.write_bytes(formats.URDF.replace(b'<axis xyz="0 0 1"/>', f'<axis xyz="{axis}"/>'.encode()))
        descriptions.append(urdf.load(path)[0].description())
    assert descriptions[0] == descriptions[1]


def test_names_that_are_taken_are_numbered_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<mujoco><worldbody>" + "<body name='a'/>" * 4 + "<body name='a_body_3'/></worldbody></mujoco>")
    assert list(mjcf.load(path)[0].bodies) == ["a", "a_body", "a_body_2", "a_body_3", "a_body_3_body"]


# -- TOML --------------------------------------------------------------------------------------------------------------

HEAD = "cardan = 2\n"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (HEAD + ".".join("a" * 17) + " = 1\n", 2),
        (HEAD + "\n" + ' . '.join(['"a"'] * 17) + " = 1\n", 3),
        (HEAD + "[" + ".".join("a" * 17) + "]\n", 2),
        (HEAD + "b = {" + ".".join("a" * 17) + " = 1}\n", 2),
        (HEAD + "b = '''\n'''\nc = " + "[" * 17 + "]" * 17 + "\n", 4),
    ],
)  # fmt: skip
def test_keys_of_more_than_16_parts_are_refused_with_their_line(content: str, line: int) -> None:
    with pytest.raises(cd.FileError, match="16 are read") as caught:
        reader.read(content, "a", False)
    assert caught.value.problems[0].line == line


def test_dots_in_strings_and_comments_are_no_parts() -> None:
    dots = ".".join("a" * 40)
    written = f'name = "{dots}"  # {dots} {"[" * 40}\n[bodies.a]\nposition = [ 1.0, 2.0, 3.0 ]\n'
    made = reader.read(f"{HEAD}{written}", "a", False)
    assert made.name == dots and len(made.bodies) == 1
    multi = reader.read(f'{HEAD}name = """{dots}{"[" * 40}"""\n', "a", False)
    assert multi.name == dots + "[" * 40


def test_a_comment_behind_a_value_keeps_the_fast_reading() -> None:
    """The form of a file by hand: the standard library reads at most 0.6 MB."""
    body = '[bodies."a # b"]  # first\nmass = 2.0 # kg\nposition = [1.0, 2.0, 3.0]   \n'
    found = text._fast(f"{HEAD}{body}", float)
    assert found == {"cardan": 2, "bodies": {"a # b": {"mass": 2.0, "position": [1.0, 2.0, 3.0]}}}
    assert found == text._standard(f"{HEAD}{body}", float)


def test_too_little_memory_is_an_error_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(text, "_fast", exhausted)
    with pytest.raises(cd.FileError, match="not enough memory"):
        reader.read(HEAD, "a", False)


def test_lines_are_told_of_large_texts_where_they_are_known() -> None:
    """Behind MOST_TOKENS an error has its key alone, not a wrong line."""
    body = (
        '{"cardan": 2, "bodies": {\n"a": {"pos": 1},\n"n": {"shapes": ['
        + "[],\n" * 110_000
        + '[]]},\n"b": {"pos": 2}}}'
    )
    with pytest.raises(cd.FileError) as caught:
        reader.read(body, "a", True)
    assert {(problem.key, problem.line) for problem in caught.value.problems} >= {
        ("bodies.a.pos", 2),
        ("bodies.b.pos", 0),
    }
