"""Properties of the package: one version, types, a fast import, and no paths of one machine."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cardan

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

HEAVY = ("numba", "llvmlite", "scipy", "matplotlib", "websockets", "pyarrow", "dask", "distributed")

# A finder that records every import, also inside try/except, and also of packages that are not installed.
WATCH_IMPORTS = f"""
import sys

class Watch:
    seen = set()
    def find_spec(self, name, path=None, target=None):
        self.seen.add(name.partition(".")[0])

sys.meta_path.insert(0, Watch())
import cardan
print(*sorted(Watch.seen.intersection({HEAVY!r})))
"""

# Directories of one user or machine at the start of a path; not a/home/b, and not in a web address.
MACHINE_PATH = re.compile(rb"(?<![\w.~)}-])/(?:home|root|work|Users)/")


def project_files() -> list[Path]:
    """Files that are tracked by git or not ignored; without git, all files except environments and caches."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        paths = []
        for folder, folders, files in os.walk(ROOT):
            folders[:] = [name for name in folders if name == ".ci" or not name.startswith((".", "__pycache__"))]
            paths += [Path(folder, name) for name in files]
    else:
        paths = [ROOT / os.fsdecode(name) for name in listing.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def test_version_has_one_source() -> None:
    assert importlib.metadata.version("cardan") == cardan.__version__
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT


def test_changelog_has_a_section_for_the_version() -> None:
    assert f"\n## [{cardan.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_types_are_shipped() -> None:
    assert importlib.resources.files("cardan").joinpath("py.typed").is_file()


def test_import_is_light() -> None:
    run = subprocess.run([sys.executable, "-c", WATCH_IMPORTS], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


def test_import_loads_no_solver() -> None:
    """Modules for assembly and motion are loaded at first use; each takes milliseconds in a new process."""
    run = subprocess.run(
        [sys.executable, "-c", "import sys, cardan; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = run.stdout.split()
    assert not [name for name in loaded if name.startswith(("cardan.coordinates", "cardan.solvers"))]


def test_lowest_versions_are_the_lower_bounds() -> None:
    """Also of Numba, with which the kernels of a wheel are compiled, and of what studies need."""
    extras = PROJECT["optional-dependencies"]
    required = [*PROJECT["dependencies"], *extras["jit"], *extras["study"]]
    bounds = dict(re.findall(r"([\w-]+)>=([\d.]+)", ";".join(required)))
    assert len(bounds) == len(required)
    pins = dict(line.split("==") for line in (ROOT / "tests" / "lowest-versions.txt").read_text().split())
    assert pins.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert re.fullmatch(rf"{re.escape(bound)}(\.0)*", pins[name]), (name, pins[name], bound)


def test_no_file_names_a_path_of_one_machine() -> None:
    found = []
    for path in project_files():
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if MACHINE_PATH.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]!r}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("place", ["home", "root", "work", "Users"])
def test_paths_of_one_machine_are_recognised(place: str) -> None:
    assert MACHINE_PATH.search(f"open('/{place}/me/model.json')".encode())
    assert not MACHINE_PATH.search(f"https://example.org/{place}/page and docs/{place}/page.md".encode())
