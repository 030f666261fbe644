"""Files of motions and simulations: an independent reader finds the poses of the motion in them."""

from __future__ import annotations

import csv
import json
import pickle
import struct
import zlib

import numpy as np
import pytest

import cardan as cd
from cardan import shapes
from cardan.examples import REGISTRY
from cardan.math import euler
from cardan.view.render import camera_for, png, render
from cardan.view.scene import scene


@pytest.fixture(scope="module")
def motion():
    m = REGISTRY["slider_crank"].build()
    return m, m.move(np.linspace(0.0, 1.0, 13))


@pytest.fixture(scope="module")
def swinging():
    """A body on a rod of fixed length: a strut."""
    m = cd.Mechanism("rod")
    bob = m.body("bob", position=(1, 0, 0), mass=1.0)
    m.distance("rod", m.ground.point(), bob.point(), 1.0)
    return m, m.simulate(0.5, rtol=1e-8, times=np.linspace(0, 0.5, 6))


WIDTH = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}
KIND = {5126: "<f4", 5125: "<u4"}


class Glb:
    """A reader of GLB files that shares nothing with the writer."""

    def __init__(self, data: bytes) -> None:
        magic, version, length = struct.unpack_from("<4sII", data)
        assert (magic, version, length) == (b"glTF", 2, len(data))
        size, kind = struct.unpack_from("<I4s", data, 12)
        assert kind == b"JSON" and size % 4 == 0
        self.json = json.loads(data[20 : 20 + size])
        more, kind = struct.unpack_from("<I4s", data, 20 + size)
        assert kind == b"BIN\0" and more % 4 == 0 and 28 + size + more == length
        self.blob = data[28 + size :]
        assert self.json["buffers"][0]["byteLength"] == len(self.blob)

    def read(self, index):
        a = self.json["accessors"][index]
        view = self.json["bufferViews"][a["bufferView"]]
        width = WIDTH[a["type"]]
        assert view["byteOffset"] % 4 == 0 and view["byteLength"] == 4 * width * a["count"]
        rows = np.frombuffer(self.blob, KIND[a["componentType"]], width * a["count"], view["byteOffset"])
        return rows.reshape(a["count"], width)

    def tracks(self, name):
        node = next(k for k, n in enumerate(self.json["nodes"]) if n["name"] == name)
        (animation,) = self.json["animations"]
        found = {}
        for channel in animation["channels"]:
            if channel["target"]["node"] == node:
                sampler = animation["samplers"][channel["sampler"]]
                found[channel["target"]["path"]] = self.read(sampler["input"])[:, 0], self.read(sampler["output"])
        return found


def test_an_animated_model_has_the_poses_of_the_motion(tmp_path, motion):
    m, mov = motion
    mov.save(tmp_path / "x.glb")
    file = Glb((tmp_path / "x.glb").read_bytes())
    for body in m.bodies:
        tracks = file.tracks(body)
        times, positions = tracks["translation"]
        assert times == pytest.approx(mov.times, abs=1e-6)
        assert positions == pytest.approx(mov.positions(body), abs=1e-6)
        quaternions = tracks["rotation"][1][:, [3, 0, 1, 2]]
        assert np.abs(np.einsum("ij,ij->i", quaternions, mov.quaternions(body))) == pytest.approx(1.0, abs=1e-6)
        assert (np.einsum("ij,ij->i", quaternions[1:], quaternions[:-1]) > 0.0).all()  # the short way round
    for mesh in file.json["meshes"]:
        for primitive in mesh["primitives"]:
            positions = file.read(primitive["attributes"]["POSITION"])
            accessor = file.json["accessors"][primitive["attributes"]["POSITION"]]
            assert (
                accessor["min"] == positions.min(axis=0).tolist() and accessor["max"] == positions.max(axis=0).tolist()
            )
            assert file.read(primitive["indices"]).max() < len(positions)
            normals = file.read(primitive["attributes"]["NORMAL"])
            assert np.linalg.norm(normals, axis=1) == pytest.approx(1.0, abs=1e-3)
            assert primitive["material"] < len(file.json["materials"])
    (root,) = file.json["scenes"][0]["nodes"]
    up = np.array(file.json["nodes"][root]["rotation"])[[3, 0, 1, 2]]
    assert euler.rotate(up, -np.array(m.gravity) / 9.81) == pytest.approx([0, 1, 0], abs=1e-6)


@pytest.mark.slow
def test_other_programs_read_the_model(tmp_path, motion):
    trimesh = pytest.importorskip("trimesh")
    m, mov = motion
    mov.save(tmp_path / "x.glb")
    read = trimesh.load(tmp_path / "x.glb")
    drawn = scene(m, mov.states[0])
    faces = sum(len(mesh.faces) for part in drawn.parts for mesh in part.meshes)
    assert sum(len(g.faces) for g in read.geometry.values()) == faces
    # placed by the reader's own transforms: the same box, in axes with y up
    assert np.linalg.norm(read.extents) == pytest.approx(drawn.extent, rel=1e-2)


def test_struts_are_stretched_between_their_points(tmp_path, swinging):
    _, sim = swinging
    sim.save(tmp_path / "x.glb")
    tracks = Glb((tmp_path / "x.glb").read_bytes()).tracks("rod")
    start, turn, scale = (tracks[path][1] for path in ("translation", "rotation", "scale"))
    ends = start + euler.rotate(turn[:, [3, 0, 1, 2]].astype(float), scale * np.array([0, 0, 1.0]))
    assert np.abs(start).max() == 0.0
    assert ends == pytest.approx(sim.positions("bob"), abs=1e-6)


def test_backward_motions_play_forwards(tmp_path, motion):
    m, _ = motion
    back = m.move([1.0, 0.9, 0.8])
    back.save(tmp_path / "x.glb")
    times, positions = Glb((tmp_path / "x.glb").read_bytes()).tracks("rod")["translation"]
    assert (np.diff(times) > 0.0).all() and times[0] == 0.0
    assert positions == pytest.approx(back.positions("rod")[::-1], abs=1e-6)


def test_tables_are_read_back(tmp_path, motion):
    _, mov = motion
    mov.save(tmp_path / "x.csv")
    with (tmp_path / "x.csv").open() as file:
        titles, *rows = csv.reader(file)
    read = dict(zip(titles, np.array(rows, dtype=float).T, strict=True))
    assert np.array_equal(read["t [s]"], mov.times)
    assert np.array_equal(read["slider x [m]"], mov.positions("slider")[:, 0])
    assert np.array_equal(read["rod wz [rad/s]"], mov.velocities("rod")[:, 5])


def pixels(data: bytes) -> np.ndarray:
    """A reader of our PNG files."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, head = 8, b"", b""
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(kind + content)
        head, body = (content, body) if kind == b"IHDR" else (head, body + content)
        at += 12 + size
    width, height = struct.unpack_from(">II", head)
    return (
        np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3)
    )


@pytest.mark.slow
def test_pictures_and_animations(tmp_path, motion):
    image = pytest.importorskip("PIL.Image")
    _, mov = motion
    mov.save(tmp_path / "x.png")
    shown = pixels((tmp_path / "x.png").read_bytes())
    assert shown.shape == (600, 800, 3)
    assert 0.02 < (shown.min(axis=2) < 200).mean() < 0.9  # something is drawn, on white
    assert np.array_equal(np.asarray(image.open(tmp_path / "x.png").convert("RGB")), shown)
    mov.save(tmp_path / "x.gif")
    with image.open(tmp_path / "x.gif") as gif:
        assert gif.n_frames == len(mov.times)
        first = np.asarray(gif.convert("RGB")).astype(int)
        gif.seek(6)
        assert np.abs(np.asarray(gif.convert("RGB")).astype(int) - first).max() > 100  # it moves


def test_the_renderer_draws_what_is_in_front():
    """A red box before a blue one: the middle is red; from behind it is blue.  Its silhouette has the right size."""
    m = cd.Mechanism(gravity=(0, 0, -1))
    near = m.body("near")
    near.attach(shapes.box(1, 0.2, 1), near.frame((0, -1, 0)), color="#ff0000")
    near.attach(shapes.box(2, 0.2, 2), near.frame((0, 1, 0)), color="#0000ff")
    drawn = scene(m)
    for side, leading in ((1.0, 0), (-1.0, 2)):
        axes = np.array([[side, 0, 0], [0, 0, 1], [0, -side, 0]], dtype=float)
        camera = camera_for(drawn, [drawn.poses], (200, 200), axes)
        shown = render(drawn, size=(200, 200), camera=camera)
        middle = shown[95:105, 95:105].reshape(-1, 3).mean(axis=0)
        assert middle.argmax() == leading
        covered = (shown.min(axis=2) < 128).mean() * 200**2 / camera.scale**2
        assert covered == pytest.approx(4.0, rel=0.05)  # m²


def test_png_keeps_every_pixel():
    image = np.random.default_rng(1).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    assert np.array_equal(pixels(png(image)), image)


def test_bad_files_are_refused_and_leave_nothing(tmp_path, motion):
    _, mov = motion
    with pytest.raises(cd.ModelError, match=r"must end in \.csv, \.png, \.gif, \.glb"):
        mov.save(tmp_path / "x.txt")
    with pytest.raises(cd.ModelError, match="cannot be written"):
        mov.save(tmp_path / "missing" / "x.glb")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.glb").write_bytes(b"old")
    with pytest.raises(cd.ModelError, match="not of mechanism 'other'"):
        other = cd.Mechanism("other")
        other.body("alone")
        mov.save(tmp_path / "x.glb", mechanism=other)
    assert (tmp_path / "x.glb").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_results_know_when_their_mechanism_was_edited(tmp_path):
    m = REGISTRY["slider_crank"].build()
    mov = m.move([0.0, 0.1])
    m["rod"].attach(shapes.sphere(0.05))  # looks may change
    mov.save(tmp_path / "x.glb")
    m.body("new")
    with pytest.raises(cd.ModelError, match="was edited since"):
        mov.save(tmp_path / "y.glb")
    twin = pickle.loads(pickle.dumps(mov))
    with pytest.raises(cd.ModelError, match=r"pass it: result\.save"):
        twin.save(tmp_path / "y.glb")
    twin.save(tmp_path / "y.glb", mechanism=REGISTRY["slider_crank"].build())
    assert (tmp_path / "y.glb").stat().st_size > 10_000
    twin.save(tmp_path / "y.csv")


def test_a_resumed_simulation_can_be_read_and_saved(tmp_path):
    m = REGISTRY["slider_crank"].build()
    whole = m.simulate(0.2, step=1e-3)
    stopped = m.simulate(0.2, step=1e-3, max_seconds=1e-9)
    resumed = stopped.resume() if not stopped.ok else stopped
    assert np.array_equal(resumed.reaction("A").force, whole.reaction("A").force)
    resumed.save(tmp_path / "x.glb")
