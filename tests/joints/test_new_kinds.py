"""A new joint, load or shape is added in two places, and every law, file, page and document has it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# files of laws, and how many of them a joint, a load and a shape have at least
LAWS = {
    "tests/new_kinds.py": 5,
    "tests/joints/test_joints.py": 21,
    "tests/dynamics/test_loads.py": 5,
    "tests/mechanism/test_capabilities.py": 32,
    "tests/mechanism/test_drawing.py": 1,
    "tests/system/test_parameters.py": 4,
    "tests/system/test_references.py": 1,
    "tests/view/test_scene.py": 1,
    "tests/files/test_files.py": 4,
    "tests/shapes/test_shapes.py": 8,
}


def test_the_laws_of_all_kinds_cover_a_new_joint_load_and_shape() -> None:
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "tests.new_kinds"]
    command += ["-k", "slot or dashpot or cone", *LAWS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = re.findall(r"^(tests/\S+?\.py)::.* PASSED", done.stdout, re.MULTILINE)
    found = {file: passed.count(file) for file in LAWS}
    assert all(found[file] >= least for file, least in LAWS.items()), found
