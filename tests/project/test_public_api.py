"""The public names and signatures are those of public_api.txt, so that none changes unnoticed."""

from __future__ import annotations

from difflib import unified_diff

from tests.project import public_api

ADVICE = """The public interface differs from tests/project/public_api.txt.
If that is intended, run `python tests/project/public_api.py` and commit the file with a line in CHANGELOG.md.
docs/stability.md says how long a name must stay.
"""


def test_public_names_and_signatures_are_the_ones_on_file() -> None:
    on_file = public_api.FROZEN.read_text(encoding="utf-8")
    change = unified_diff(on_file.splitlines(), public_api.text().splitlines(), "on file", "library", n=1, lineterm="")
    difference = "\n".join(change)
    assert not difference, ADVICE + difference


def test_every_public_class_with_a_constructor_exists() -> None:
    named = {line.partition("(")[0] for line in public_api.lines() if not line.startswith(" ")}
    assert named >= public_api.MADE_BY_USERS | public_api.CLOSED
