"""The gallery of parts from CAD: assembled from scattered parts, driven, dragged."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cardan as cd
from cardan import examples
from cardan.cli import main
from gallery import solids
from gallery.checks import without_drivers

GRIPS = {
    "vice": ("jaw", (0.0, 0.0, 0.02)),
    "toggle_clamp": ("handle", (0.0, 0.08, 0.0)),
    "engine": ("piston", (0.0, 0.0, 0.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", examples.CAD)
def test_an_example_from_cad_is_assembled_saved_driven_and_dragged(name, tmp_path):
    example = examples.find(name)
    m = example.build()
    drawn = m.diagnose(m.state)
    assert not drawn.assembled  # the parts are scattered in the file
    result = m.assemble()
    assert result.ok and result.residual <= 1e-9
    assert len(example.facts(m, result)) >= 2 and example.motion_facts(m, result)
    m.save(file := tmp_path / f"{name}.cardan.toml")
    assert np.abs(cd.load(file).assemble().state.coordinates - result.state.coordinates).max() <= 1e-12
    free = without_drivers(m)
    body, grip = GRIPS[name]
    session = free.session(result.state)
    hand = session.grasp(body, grip)
    start = np.array(hand.target)
    for k in range(40):
        hand.target = start + 0.004 * np.array([np.sin(0.2 * k), 1.0 - np.cos(0.2 * k), 0.2])
        session.step()
        assert free.diagnose(session.state).residual <= 1e-9
    moved = np.linalg.norm(session.state[body].position - result.state[body].position)
    turned = abs(float(session.state[body].quaternion @ result.state[body].quaternion))
    assert moved > 1e-4 or turned < 1.0 - 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", examples.CAD)
def test_the_step_file_of_an_example_has_the_solids_of_its_script(name, tmp_path):
    """`python -m gallery NAME` writes it anew."""
    solids.write(tmp_path / "made.step", examples.CAD[name].script().tree(), short=True)
    made, stored = cd.load_step(tmp_path / "made.step"), cd.load_step(examples.CAD[name].folder / f"{name}.step")
    assert list(made) == list(stored)
    for one, other in zip(made.parts, stored.parts, strict=True):
        assert len(one.faces) == len(other.faces) and one.color == other.color
        assert one.volume == pytest.approx(other.volume, rel=1e-9)
        assert one.center == pytest.approx(other.center, abs=1e-9)
        assert one.inertia == pytest.approx(other.inertia, rel=1e-9, abs=1e-15)


def test_without_the_extra_they_are_not_listed_and_refused_by_name(monkeypatch, capsys):
    assert main(["examples", "--json"]) == 0
    assert {*examples.CAD} <= {one["name"] for one in json.loads(capsys.readouterr().out)}
    monkeypatch.setattr(examples, "find_spec", lambda name: None)
    assert main(["examples", "--json"]) == 0
    assert not {*examples.CAD} & {one["name"] for one in json.loads(capsys.readouterr().out)}
    with pytest.raises(cd.ModelError, match=r"example 'vice' has parts from CAD .* pip install 'cardan\[cad\]'"):
        examples.find("vice")
    assert main(["solve", "vice"]) != 0 and "cardan[cad]" in capsys.readouterr().err
