"""The kernels of the built-in primitives: made by the build, and in a checkout by the import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cardan
from cardan import checkout
from cardan.constraints import codegen

SOURCE = Path(cardan.__file__).parent


@pytest.mark.nojit
def test_the_generated_module_is_current():
    assert codegen.TARGET.read_text(encoding="utf-8") == codegen.generate(), "run python -m cardan.constraints.codegen"


@pytest.fixture
def package(tmp_path):
    """A checkout without the generated kernels."""
    left_out = shutil.ignore_patterns("__pycache__", "_generated.py", "examples", "page.html")
    shutil.copytree(SOURCE, tmp_path / "src" / "cardan", ignore=left_out)
    (tmp_path / "hatch_build.py").touch()
    return tmp_path / "src" / "cardan"


def imported(package, code="import cardan"):
    """Run code in a new process without numpy, in which ``cardan`` is that package."""
    blocked = "import sys; sys.modules['numpy'] = None; "
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", blocked + code], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_an_import_makes_the_kernels_without_numpy(package):
    target = package / "constraints" / "_generated.py"
    run = imported(package)
    assert run.returncode == 0, run.stderr
    assert target.read_text(encoding="utf-8") == codegen.generate()
    assert [path.name for path in target.parent.iterdir() if path.name.startswith(".")] == []
    made = target.stat().st_mtime_ns
    assert imported(package).returncode == 0
    assert target.stat().st_mtime_ns == made


@pytest.mark.parametrize("is_checkout", [True, False])
def test_an_import_renews_kernels_that_are_older_than_a_source(package, is_checkout):
    """In an installed package the times of files mean nothing."""
    target, source = package / "constraints" / "_generated.py", package / "constraints" / "primitives.py"
    target.write_text("old = True\n", encoding="utf-8")
    os.utime(target, (1e9, 1e9))
    if not is_checkout:
        (package.parents[1] / "hatch_build.py").unlink()
    text = source.read_text(encoding="utf-8").replace("def coincidence(", "def together(")
    source.write_text(text, encoding="utf-8")
    run = imported(package)
    assert run.returncode == 0, run.stderr
    assert ("def together(" in target.read_text(encoding="utf-8")) == is_checkout


def test_the_same_kernels_keep_their_file(tmp_path):
    target = tmp_path / "_generated.py"
    codegen.write(target)
    first = target.stat()
    os.utime(target, (1e9, 1e9))
    codegen.write(target)
    assert target.stat().st_ino == first.st_ino and target.stat().st_mtime > 1e9


def test_kernels_that_cannot_be_written_name_the_command(monkeypatch, tmp_path):
    missing = tmp_path / "missing" / "_generated.py"
    monkeypatch.setattr(checkout, "GENERATED", str(missing))
    monkeypatch.setattr(codegen, "write", lambda write=codegen.write: write(missing))
    with pytest.raises(ImportError, match=r"cannot be written .*run as a user who may write there: python -c"):
        checkout.make_kernels()


@pytest.mark.slow
def test_the_key_of_cached_kernels_depends_on_the_generated_text(package):
    """In a new process each: the first has to make the file, and it is made before the key is computed."""
    code = "from cardan.kernel.cache import SOURCES; print(SOURCES.digest('cardan.constraints._generated'))"
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "1"}

    def key():
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first, target = key(), package / "constraints" / "_generated.py"
    assert key() == first
    target.write_text(target.read_text(encoding="utf-8") + "more = 1\n", encoding="utf-8")
    assert key() != first
