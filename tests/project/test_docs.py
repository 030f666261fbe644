"""The documents are true: their code runs, their citations and links resolve."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import tokenize
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

import cardan as cd
from cardan.joints.placing import takes_place
from cardan.joints.registry import REGISTRY, Role
from docs import generate

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = ROOT / "docs" / "references.md"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
DOCUMENTS = [path for path in PAGES if path.is_file()]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

WIDTH = 120  # characters of a line

FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
PYTHON_LIKE = {"py", "python", "python3", "pycon", "ipython"}

BRACKETS = re.compile(r"\[([^\[\]]+)\]")
CITATION = re.compile(r"[^\W\d_]+\d{4}[a-z]?(?!\w)")  # Liu2013, Haug1989a
ENTRY = re.compile(r"^- \*\*\[([^\[\]]+)\]\*\*", re.MULTILINE)

LINK = re.compile(r"\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+[\"'][^\n]*?[\"'])?\s*\)")
LINK_DEFINITION = re.compile(r"^ {0,3}\[[^\]^][^\]]*\]:\s*<?([^\s<>]+)", re.MULTILINE)
LINK_HTML = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)\s*=\s*[\"']([^\"']+)[\"']")
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its info string, its code, the line of its first line of code, and the output it must print.

    The output of a Python block is that of a block marked ``text output`` right after it; None where there is none.
    """

    info: tuple[str, ...]
    code: str
    line: int
    output: str | None = None


def split_fences(text: str) -> tuple[list[Block], str]:
    """The fenced blocks of a document, and its prose with those blocks blanked out line by line."""
    blocks: list[Block] = []
    prose: list[str] = []
    opening: re.Match[str] | None = None
    body: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if opening is None:
            if fence:
                opening, body = fence, []
            prose.append("" if fence else line)
            continue
        prose.append("")
        if fence and not fence["info"].strip() and fence["fence"].startswith(opening["fence"]):
            blocks.append(Block(tuple(opening["info"].split()), "\n".join(body) + "\n", number - len(body)))
            opening = None
        else:
            body.append(line.removeprefix(opening["indent"]))
    if opening is not None:
        raise ValueError(f"the fence before line {number - len(body) + 1} is never closed")
    return blocks, "\n".join(prose)


def chain_python_blocks(blocks: list[Block]) -> list[list[Block]]:
    """Python blocks that share a namespace: each block marked ``python continue`` joins the one before it."""
    chains: list[list[Block]] = []
    for block in blocks:
        if block.info == ("text", "output"):
            if not chains:
                raise ValueError(f"line {block.line - 1}: an output without a Python block before it")
            chains[-1][-1] = replace(chains[-1][-1], output=block.code)
            continue
        if not block.info or block.info[0].lower() not in PYTHON_LIKE:
            continue
        if block.info == ("python",):
            chains.append([block])
        elif block.info == ("python", "continue") and chains:
            chains[-1].append(block)
        else:
            raise ValueError(
                f"line {block.line - 1}: a block marked {' '.join(block.info)!r}; "
                "valid are 'python', and 'python continue' after a first one"
            )
    return chains


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def run_chain(path: Path, chain: list[Block]) -> None:
    """Execute blocks in one fresh namespace; an error names the file and the line in it."""
    namespace: dict[str, object] = {"__name__": "__main__", "__file__": str(path)}
    for block in chain:
        printed = io.StringIO()
        try:
            # Padded to its place in the document, so that tracebacks and inspect find the lines there.
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (block.line - 1) + block.code, str(path), "exec"), namespace)
        except (Exception, SystemExit) as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else lines[-1]
            raise AssertionError(f"{name_of(path)}:{line}: {type(error).__name__}: {error}") from error
        if block.output is not None and printed.getvalue() != block.output:
            raise AssertionError(f"{name_of(path)}:{block.line}: printed {printed.getvalue()!r}, not {block.output!r}")


def find_citations(text: str) -> Iterator[tuple[str, int]]:
    """Keys cited in brackets, ``[Liu2013]``, ``[Liu2013, Haug1989]``, ``[Liu2013, eq. 5]``, with their lines."""
    for bracket in BRACKETS.finditer(text):
        if CITATION.match(bracket[1].lstrip("*@ ")):
            for key in CITATION.finditer(bracket[1]):
                yield key[0], text.count("\n", 0, bracket.start() + 1 + key.start()) + 1


def find_citations_in_module(source: str) -> Iterator[tuple[str, int]]:
    """Keys cited in the docstrings and comments of a module, with their lines in it."""
    if not any(find_citations(source)):  # most modules cite nothing: they need not be parsed
        return
    texts = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                texts.append((docstring, node.body[0].lineno))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            texts.append((token.string, token.start[0]))
    for text, start in texts:
        for key, line in find_citations(text):
            yield key, start + line - 1


def find_relative_links(text: str) -> Iterator[str]:
    """Targets of links and images outside code that are neither addresses nor places in the same document."""
    prose = INLINE_CODE.sub("", split_fences(text)[1])
    for pattern in (LINK, LINK_DEFINITION, LINK_HTML):
        for match in pattern.finditer(prose):
            target = match[1].partition("#")[0]
            if target and not ABSOLUTE.match(target):
                yield target


HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def find_anchors(text: str) -> set[str]:
    """What the headings of a document can be linked by: small letters, hyphens for blanks, no punctuation."""
    found = set()
    for match in HEADING.finditer(split_fences(text)[1]):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", match[1]).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def find_linked_places(text: str) -> Iterator[tuple[str, str]]:
    """Documents, "" for this one, and the places in them that links outside code name."""
    prose = INLINE_CODE.sub("", split_fences(text)[1])
    for match in LINK.finditer(prose):
        target, _, place = match[1].partition("#")
        if place and not ABSOLUTE.match(match[1]) and (not target or target.endswith(".md")):
            yield target, place


CHAINS = [
    pytest.param(path, chain, id=f"{name_of(path)}:{chain[0].line}")
    for path in DOCUMENTS
    for chain in chain_python_blocks(split_fences(read(path))[0])
]


@pytest.mark.parametrize(("path", "chain"), CHAINS)
def test_code_in_documents_runs(
    path: Path, chain: list[Block], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # what a block writes does not land in the sources
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_chain(path, chain)


def test_readme_shows_code() -> None:
    assert any(chain.values[0] == ROOT / "README.md" for chain in CHAINS)


@pytest.mark.slow
def test_citations_resolve() -> None:
    entries = set(ENTRY.findall(read(REFERENCES)))
    cited = [(name_of(path), key, line) for path in DOCUMENTS for key, line in find_citations(read(path))]
    cited += [(name_of(path), key, line) for path in SOURCES for key, line in find_citations_in_module(read(path))]
    missing = [f"{name}:{line}: [{key}]" for name, key, line in cited if key not in entries]
    assert not missing, "cited, but not an entry of docs/references.md:\n" + "\n".join(missing)


def test_references_are_unique() -> None:
    keys = ENTRY.findall(read(REFERENCES))
    assert len(keys) == len(set(keys)), sorted({key for key in keys if keys.count(key) > 1})


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_relative_links_lead_to_files_of_the_project(path: Path) -> None:
    broken = []
    for target in find_relative_links(read(path)):
        place = (path.parent / target).resolve()
        if not (place.exists() and place.is_relative_to(ROOT)):
            broken.append(target)
    assert not broken, f"{name_of(path)} links to what is not there: {broken}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_places_in_documents_resolve(path: Path) -> None:
    broken = []
    for target, place in find_linked_places(read(path)):
        document = path.parent / target if target else path
        if place not in find_anchors(read(document)):
            broken.append(f"{target}#{place}")
    assert not broken, f"{name_of(path)} links to places that are not there: {broken}"


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=name_of)
def test_documents_are_wrapped(path: Path) -> None:
    """At 120 characters, except for tables."""
    lines = enumerate(read(path).splitlines(), start=1)
    long = [number for number, line in lines if len(line) > WIDTH and not line.startswith("|")]
    assert not long, f"{name_of(path)}: longer than {WIDTH} characters are the lines {long}"


NAMED_FILE = re.compile(r"`([\w./]+\.(?:py|md|toml|txt))`")


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_files_named_in_documents_exist(path: Path) -> None:
    """By their path in the project or in the package, or, without a folder, by their name."""
    folders = [ROOT / name for name in ("src", "tests", "docs", "benchmarks", "fuzz")]
    known = {file.name for folder in folders for file in folder.rglob("*") if file.is_file()}
    missing = []
    for name in NAMED_FILE.findall(read(path)):
        places = (ROOT / name, ROOT / "src" / "cardan" / name, ROOT / "src" / name)
        if not any(place.is_file() for place in places) and ("/" in name or name not in known):
            missing.append(name)
    assert not missing, f"{name_of(path)} names files that are not there: {missing}"


# The checks above are only worth as much as what they find; these samples hold them to it.

SAMPLE = """\
# Title [Liu2013], see [the code](src/a.py#L3) and ![figure](<img/f.png> "a figure") or [home](https://example.org)
[more]: docs/b.md
`[no](link.md)`, [here](#title), [wiki](Screw_(joint).md)

```python
x = 1
```

```text
[no](either.md)
```

~~~python continue
assert x == 1

raise KeyError("crank")
~~~

```python
x
```
"""


def test_blocks_run_in_their_namespace_and_errors_name_the_line() -> None:
    path = ROOT / "SAMPLE.md"
    first, second = chain_python_blocks(split_fences(SAMPLE)[0])
    assert [block.line for block in first] == [6, 14]
    with pytest.raises(AssertionError, match=r"^SAMPLE\.md:16: KeyError: 'crank'$"):
        run_chain(path, first)
    with pytest.raises(AssertionError, match=r"^SAMPLE\.md:20: NameError"):
        run_chain(path, second)


@pytest.mark.parametrize("info", ["py", "Python", "python skip", "python continue"])
def test_no_block_escapes_by_its_info_string(info: str) -> None:
    with pytest.raises(ValueError, match="line 1: a block marked"):
        chain_python_blocks(split_fences(f"```{info}\n1 / 0\n```\n")[0])


def test_output_is_compared_with_what_is_printed() -> None:
    text = "```python\nprint(1 + 1)\n```\n```text output\n{}\n```\n"
    right, wrong = (chain_python_blocks(split_fences(text.format(shown))[0])[0] for shown in (2, 3))
    run_chain(ROOT / "SAMPLE.md", right)
    with pytest.raises(AssertionError, match=r"^SAMPLE\.md:2: printed '2\\n', not '3\\n'$"):
        run_chain(ROOT / "SAMPLE.md", wrong)


def test_an_output_needs_a_block_of_code() -> None:
    with pytest.raises(ValueError, match="line 1: an output without"):
        chain_python_blocks(split_fences("```text output\n2\n```\n")[0])


def test_relative_links_are_found() -> None:
    assert sorted(find_relative_links(SAMPLE)) == ["Screw_(joint).md", "docs/b.md", "img/f.png", "src/a.py"]


def test_places_are_found() -> None:
    assert list(find_linked_places(SAMPLE)) == [("", "title")]
    assert find_anchors("# A title, `code` and 2 [links](a.md)\n```\n# no\n```\n") == {"a-title-code-and-2-links"}


def test_citations_are_found() -> None:
    text = "a[0], [Liu2013] eq. 18d,\n[Haug1989a, vonSchwerin1999]; [Béz2001, eq. 4], [1, 2], [in 2013], [Li2005](b.md)"
    keys = [("Liu2013", 1), ("Haug1989a", 2), ("vonSchwerin1999", 2), ("Béz2001", 2), ("Li2005", 2)]
    assert list(find_citations(text)) == keys


def test_citations_in_code_are_found_in_docstrings_and_comments() -> None:
    module = '"""Top [A2001]."""\n\n\ndef f():\n    """Inner.\n\n    [B2002]\n    """\n    return "[C2003]"  # [D2004]'
    assert sorted(find_citations_in_module(module)) == [("A2001", 1), ("B2002", 7), ("D2004", 9)]


# --- what is generated -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", generate.TARGETS)
def test_what_follows_from_the_kinds_is_current(path: str) -> None:
    assert read(ROOT / path) == generate.TARGETS[path](), "run: make generated"


# --- the table of joints ---------------------------------------------------------------------------------------------


def joint_rows() -> dict[str, list[str]]:
    """Rows of the table of joints, by name."""
    text = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8").split("## Joints")[1].split("\n## ")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {cells[0].strip("`"): cells[1:] for cells in lines[2:]}


@pytest.mark.parametrize("name", [kind.name for kind in REGISTRY.values() if kind.is_between_places])
def test_the_table_of_joints_names_every_kind_as_it_is(name):
    """Its arguments, equations and coordinates; and what it leaves free, by the rank of its equations."""
    kind = REGISTRY[name]
    arguments, equations, free, meaning = joint_rows()[name]
    parameters = list(inspect.signature(getattr(cd.Mechanism, name)).parameters.values())[2:]
    if takes_place(kind):  # see "Placing joints"
        assert [p.name for p in parameters[-3:]] == ["at", "axis", "x"]
        del parameters[-3:]
    parameters = [p for p in parameters if p.name != "friction"]  # see "Friction of joints"
    words = [f"{takes} {p.name}" for takes, p in zip(kind.takes, parameters, strict=False)]
    for before, p in pairwise(parameters[1:]):
        words += ["*"] * (p.kind is p.KEYWORD_ONLY is not before.kind) + [p.name]
    assert arguments == ", ".join(words)
    m = cd.Mechanism()
    body = m.body("body", position=(0.3, 0.1, -0.2), orientation=(0.8, 0.2, 0.1, -0.3))
    needed = {p.name: 0.7 for p in parameters[2:] if p.default is p.empty}
    made = getattr(m, name)("made", m.ground.frame((0.1, 0, 0)), body.frame((0, 0.2, 0)), **needed)
    assert made.equations == int(equations)
    assert m.diagnose(m.assemble().state).dof == int(free.split(":")[0])
    assert re.findall(r"`(\w+)`", free) == list(kind.coordinates)
    assert meaning


def test_the_table_of_joints_names_no_others():
    assert set(joint_rows()) <= set(REGISTRY)


COUPLINGS = [name for name, kind in REGISTRY.items() if kind.role in (Role.COUPLING, Role.DRIVER, Role.LIMIT)]


@pytest.mark.parametrize("name", COUPLINGS)
def test_the_table_of_couplings_names_every_argument_with_its_default(name):
    """By the signature of the method, not by the generator of the table."""
    text = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{name}` \| `(\w+)(=?)` \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    given = list(inspect.signature(getattr(cd.Mechanism, name)).parameters.values())[2:]
    assert [(word, bool(sign)) for word, sign, _, _ in rows] == [(p.name, p.kind is p.KEYWORD_ONLY) for p in given]
    for (_, _, what, default), p in zip(rows, given, strict=True):
        assert (default == "required") == (p.default is p.empty) and what.strip()
        if isinstance(p.default, float) and abs(p.default) < 1e300:
            assert float(default) == p.default
