"""Tables, dictionaries, HTML and pictures of results; one spelling to read a coordinate."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest

import cardan as cd


def crank():
    m = cd.Mechanism("crank <1>")
    arm = m.body("arm", position=(0.5, 0, 0))
    hinge = m.revolute("hinge", m.ground, arm, at=(0, 0, 0))
    m.drive("motor", hinge, lambda t: 0.2 + t)
    return m, hinge


def items():
    m, _ = crank()
    result = m.assemble()
    motion = m.move(np.linspace(0, 1, 5))
    return {
        "mechanism": m,
        "result": result,
        "state": motion.states[0],
        "motion": motion,
        "diagnosis": m.diagnose(result.state),
        "simulation": m.simulate(0.1, result.state),
    }


def test_html_is_well_formed_and_escapes_names():
    class Tags(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attributes):
            self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    for name, item in items().items():
        text = item._repr_html_()
        tags = Tags()
        tags.feed(text)
        assert not tags.open, name
        assert "<1>" not in text
    assert "arm" in items()["result"]._repr_html_()


def test_dictionaries_are_json_and_tables_have_columns_of_equal_length():
    found = items()
    for name in ("result", "state", "motion", "diagnosis", "simulation"):
        json.loads(json.dumps(found[name].to_dict(), allow_nan=False))
    for name in ("mechanism", "result", "state", "motion", "simulation"):
        lengths = {len(column) for column in found[name].table().values()}
        assert len(lengths) == 1, name
    motion = found["motion"]
    assert np.array_equal(motion.table()["t [s]"], motion.times)
    assert np.array_equal(motion.table()["arm x [m]"], motion.positions("arm")[:, 0])
    assert found["diagnosis"].to_dict()["dof"] == 1
    assert found["mechanism"].table()["kind"] == ["revolute", "drive"]


def test_a_coordinate_is_read_with_one_spelling_everywhere():
    m, hinge = crank()
    result, motion = m.assemble(), m.move([0.0, 0.5])
    simulation = m.simulate(0.1, result.state)
    assert abs(result.coordinate(hinge) - 0.2) <= 1e-12
    assert result.coordinate(m["hinge"], "angle") == result.state.coordinate(hinge.of("angle"))
    assert np.abs(motion.coordinate(hinge) - [0.2, 0.7]).max() <= 1e-12
    assert abs(simulation.coordinate(hinge)[0] - 0.2) <= 1e-9
    for read in (result, result.state):
        assert read.coordinate("hinge") == read.coordinate("hinge.angle") == read.coordinate(hinge)
        with pytest.raises(cd.ModelError, match="no joint is named 'hing'; did you mean 'hinge'"):
            read.coordinate("hing")


@pytest.mark.slow
def test_a_motion_is_drawn_and_saved(tmp_path):
    m, hinge = crank()
    motion = m.move(np.linspace(0, 1, 5))
    figure = motion.plot(hinge)
    line = figure.axes[0].get_lines()[0]
    assert np.array_equal(line.get_ydata(), motion.coordinate(hinge))
    assert len(motion.plot().axes) == 3
    for name in ("motion.csv", "motion.png"):
        motion.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(cd.ModelError, match=r"\.csv"):
        motion.save(tmp_path / "motion.txt")
