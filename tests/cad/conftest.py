"""Without OCP (extra ``cad``), none of these tests is collected.  With it, it is loaded once for all STEP files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.cad.forks import Forks

collect_ignore_glob = [] if find_spec("OCP") else ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def forks() -> Iterator[Forks | None]:
    from cardan.cad import step

    if sys.platform != "linux":
        yield None
        return
    with pytest.MonkeyPatch.context() as patch:
        forks = Forks(step.child.__file__)
        patch.setattr(step, "subprocess", forks)
        yield forks
        forks.close()
