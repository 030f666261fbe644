"""The built page in a real Chromium."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import cardan
from chromium import Browser

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page() -> Path:
    found = Path(cardan.__file__).parent / "view" / "page.html"
    assert found.is_file(), "the page is not built: python client/build.py"
    return found


def test_the_page_opens_and_needs_no_other_file(page: Path, browser: Browser) -> None:
    tab = browser.open(page.as_uri())
    tab.until("document.querySelector('.message')?.innerText.includes('cardan view')")  # no token
    assert not tab.errors()
    loaded = tab.js("performance.getEntriesByType('resource').map(e => e.name)")
    assert not [name for name in loaded if not name.startswith(("data:", "blob:"))], loaded
    tab.close()


def test_the_lock_file_has_no_download_addresses() -> None:
    lock = json.loads((ROOT / "client" / "package-lock.json").read_text(encoding="utf-8"))
    assert len(lock["packages"]) > 10
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
    assert all("version" in package for name, package in lock["packages"].items() if name)


def built(tmp_path: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """The build of a copy of the client's sources, without anything that was downloaded, in another environment."""
    kept = shutil.ignore_patterns("node_modules", "build", "__pycache__")
    shutil.copytree(ROOT / "client", tmp_path / "client", ignore=kept)
    environment = {**os.environ, "HOME": str(tmp_path), **changes}
    command = [sys.executable, str(tmp_path / "client" / "build.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_no_node_and_no_network_is_told_with_the_way_out(tmp_path: Path) -> None:
    done = built(tmp_path, PATH=str(tmp_path), PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 1
    assert "there is no Node 20.19 or newer on PATH, and pip cannot install one" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "src" / "cardan" / "view" / "page.html").exists()


@pytest.mark.slow
def test_an_old_node_is_not_used(tmp_path: Path) -> None:
    for name in ("node", "npm"):
        (tmp_path / name).write_text("#!/bin/sh\necho v18.20.0\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)
    done = built(tmp_path, PATH=f"{tmp_path}{os.pathsep}/bin", PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 1
    assert "there is no Node 20.19 or newer on PATH" in done.stderr


@pytest.mark.slow
def test_node_without_a_network_is_told_with_the_way_out(tmp_path: Path) -> None:
    """npm's registry is a port where nothing listens, and its cache is empty."""
    spec = importlib.util.spec_from_file_location("client_build", ROOT / "client" / "build.py")
    assert spec is not None and spec.loader is not None
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    command = client.find_npm()  # of this machine: on PATH, or from pip
    for name, words in (("node", (shutil.which("node", path=os.environ["PATH"]),)), ("npm", command)):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        registry = f"http://127.0.0.1:{unused.getsockname()[1]}"
        changes = {"npm_config_registry": registry, "npm_config_fetch_retries": "0", "npm_config_cache": str(tmp_path)}
        done = built(tmp_path, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", **changes)
    assert done.returncode == 1
    assert "come from the npm registry: check the network, or npm's settings" in done.stderr
    assert not (tmp_path / "src" / "cardan" / "view" / "page.html").exists()


def demo(folder: Path, terminal: bool, **changes: str) -> str:
    """What `make demo` runs in an environment whose programs only say how they were called."""
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "src/cardan/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "cardan"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{folder}/calls\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    (folder / ".venv" / f".installed-{cardan.__version__}").touch()  # newer than pyproject.toml
    constraints = folder / "src" / "cardan" / "constraints"
    constraints.mkdir()
    for name in ("primitives", "codegen", "expression", "registry", "_generated"):  # the last is newer than its sources
        (constraints / f"{name}.py").touch()
    environment = {key: value for key, value in os.environ.items() if key not in ("CI", "HEADLESS")} | changes
    ours, theirs = pty.openpty()
    try:
        stdout = theirs if terminal else subprocess.DEVNULL
        subprocess.run(["make", "demo"], cwd=folder, env=environment, stdout=stdout, check=True)
    finally:
        os.close(ours)
        os.close(theirs)
    return (folder / "calls").read_text(encoding="utf-8")


def test_the_demo_opens_the_page_in_a_terminal_and_prints_the_table_elsewhere(tmp_path: Path) -> None:
    kernels = "python -m kernels.link\n"
    assert demo(tmp_path / "terminal", True) == f"{kernels}python client/build.py\ncardan view\n"
    table = f"{kernels}cardan examples --solve\n"
    assert demo(tmp_path / "none", False) == table
    assert demo(tmp_path / "headless", True, HEADLESS="1") == table
    assert demo(tmp_path / "ci", True, CI="true") == table
