"""Text of a model file to plain values and back: TOML or JSON; and the line of every key.

Lines as this library writes them are read faster, table by table; any other text is left to the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cardan.errors import ModelError
from cardan.files.units import Exact, Raw

Path = tuple[str | int, ...]

_NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?"
_STRING: Final = r'"[^"\\\x00-\x1f\x7f]*"'
_PLAIN: Final = r'"[^"\\\x00-\x1f\x7f={]*"'  # inside an inline table, where keys are found by their " = "
_ARRAY: Final = rf"\[(?:{_NUMBER}(?:, {_NUMBER})*+)?\]"  # possessive: a list of 10⁶ numbers would take 0.7 GB
_VALUE: Final = rf"(?:{_ARRAY}|{_NUMBER}|{_STRING}|true|false)"
_ITEM: Final = rf"(?:{_ARRAY}|{_NUMBER}|{_PLAIN}|true|false)"
_KEY: Final = r"[A-Za-z0-9_-]+"
_NAME: Final = rf"(?:{_KEY}|{_STRING})"
_PART: Final = re.compile(_NAME)
_LINE: Final = re.compile(
    rf"({_NAME}) = (?:({_VALUE})|(\{{ {_KEY} = {_ITEM}(?:, {_KEY} = {_ITEM})* \}}))|\[({_NAME}(?:\.{_NAME})*)\]"
)
_TOKENS: Final = re.compile(rf"({_NAME}) = ((?>{_STRING}|{_KEY} = |{_NUMBER}|true|false|[\[\]{{}}, ])++)")
_INNER: Final = re.compile(rf"{_STRING}|(?<=[{{,] )({_KEY}) = ")
_LONG: Final = re.compile(r"\b0[xob][0-9a-fA-F_]{2000}")
_COMMENT: Final = re.compile(r"""[ \t]*+(?:#[^"'\x00-\x08\x0a-\x1f\x7f]*)?$""")  # at the end of a line; in no string
_BARE: Final = re.compile(_KEY)
_INNER_KEY: Final = re.compile(rf"(?<=[{{,] )({_KEY}) = ")


MOST_PARTS: Final = 16  # of a key a.b.c, and lists and tables in each other: tomllib needs the square of the parts
MOST_SQUARES: Final = 500_000  # parts² of all keys of a text that tomllib reads
MOST_STANDARD: Final = 600_000  # characters of such a text: 0.2 to 0.7 s
MOST_MEMORY: Final = 100_000_000  # bytes of the values of a text, by this estimate for each character
MEMORY: Final[Mapping[str, int]] = {"{": 240, "[": 90, ",": 80, ":": 120, "=": 120}
MEMORY_OF_DECIMAL: Final = 130  # in place of that of a comma
MOST_TOKENS: Final = 200_000  # in which the lines of keys are sought: 0.5 s
_STRINGS: Final = (  # each is found also without its end, so that no text is searched twice
    r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*+"{0,5}' + r"|'''(?:[^']|'(?!''))*+'{0,5}",
    r'"(?:[^"\\\n]|\\.)*+"?' + r"|'[^'\n]*+'?",
)
_NESTING: Final = re.compile(  # longest keys, and brackets, outside of strings and comments
    rf"{_STRINGS[0]}|(?P<key>(?:{_STRINGS[1]}|[\w-]++)(?:[ \t]*+\.[ \t]*+(?:{_STRINGS[1]}|[\w-]++))++)"
    rf"|{_STRINGS[1]}|#[^\n]*+|[\w-]++|(?P<open>[\[{{]++)|(?P<close>[\]}}]++)"
)
_PARTS: Final = re.compile(rf"{_STRINGS[1]}|[\w-]++")


class SyntaxProblem(ModelError):
    """The text is not TOML or JSON; ``line`` is where, or 0."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str, as_json: bool, *, exact: bool = False) -> dict[str, Any]:
    """The document; exact: numbers with a point as decimals."""
    number: Callable[[str], Any] = Exact if exact else float
    _check_memory(text, exact)
    try:
        if as_json:
            document = json.loads(text, parse_float=number, object_pairs_hook=_unique, parse_constant=_no_constant)
        else:
            document = _fast(text, number)
            if document is None:
                document = _standard(text, number)
    except RecursionError:
        raise SyntaxProblem("it is nested too deeply", _deepest(text)) from None
    except SyntaxProblem:
        raise
    except json.JSONDecodeError as error:
        raise SyntaxProblem(f"it is not valid JSON: {_json_reason(text, error)}", error.lineno) from None
    except (ValueError, ArithmeticError) as error:  # an integer of thousands of digits, a decimal out of range
        raise SyntaxProblem(f"it has a value that cannot be read: {str(error)[:200]}", _suspect(text, error)) from None
    if not isinstance(document, dict):
        raise SyntaxProblem("it must be one table of keys and values", 1)
    return document


def _check_memory(text: str, exact: bool) -> None:
    """Refuse a text whose values take very much memory; it is an upper bound for all but tables of one key."""
    weights = {**MEMORY, ",": MEMORY_OF_DECIMAL} if exact else MEMORY
    if len(text) * max(weights.values()) > MOST_MEMORY:
        needed = sum(text.count(letter) * weight for letter, weight in weights.items())
        if needed > MOST_MEMORY:
            most = f"at most {MOST_MEMORY / 1e6:.0f} MB are read: divide the file"
            raise SyntaxProblem(f"its values take about {needed / 1e6:.0f} MB of memory; {most}", 1)


def _check_nesting(text: str) -> None:
    """Refuse a TOML text with keys of many parts, or deep lists and tables, before the standard library reads it."""
    depth = squares = 0
    for match in _NESTING.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        count = match.end() - match.start()
        if kind == "key":
            count = len(_PARTS.findall(match[0]))
            squares += count * count if count > 3 else 0
        depth = depth + count if kind == "open" else max(depth - count, 0) if kind == "close" else depth
        if depth > MOST_PARTS or squares > MOST_SQUARES or (kind == "key" and count > MOST_PARTS):
            line = text.count("\n", 0, match.start()) + 1
            what = f"a key of {count} parts" if kind == "key" and count > MOST_PARTS else "it is nested too deeply"
            if squares > MOST_SQUARES:
                what = "it has too many keys of many parts"
            raise SyntaxProblem(f"{what}; at most {MOST_PARTS} are read, and no model needs so many", line)


def _standard(text: str, number: Callable[[str], Any]) -> dict[str, Any]:
    """The document, by the standard library."""
    import tomllib  # which most files do not need

    if len(text) > MOST_STANDARD:
        ways = "write one key in a line, as cd.save does, or save it as JSON"
        line = text.count("\n", 0, MOST_STANDARD) + 1
        raise SyntaxProblem(
            f"it has {len(text):,} characters in a free form, of which {MOST_STANDARD:,} are read; {ways}", line
        )
    _check_nesting(text)
    if long := _LONG.search(text):  # Python reads it, but refuses to print it
        line = text.count("\n", 0, long.start()) + 1
        raise SyntaxProblem("it has an integer of thousands of digits", line)
    try:
        return tomllib.loads(text, parse_float=number)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = int(found.group(1)) if found and found.group(1) else text.count("\n") + 1
        raise SyntaxProblem(f"it is not valid TOML: {_toml_reason(str(error))}", line) from None


def _toml_reason(message: str) -> str:
    """The message of tomllib, and what is probably meant."""
    if twice := re.search(r"Cannot declare \((.*?),?\) twice", message):
        header = ".".join(part.strip().strip("'") for part in twice[1].split(","))
        return f"the table [{header}] is given twice; give one of them another name"
    hints = {
        "Invalid value": 'a text needs quotes: kind = "revolute"',
        "Cannot overwrite a value": "the key is given twice",
        "Unclosed array": "its values are separated by commas, and it ends with ]",
        "Illegal character '\\n'": 'a text ends with its quote " in the same line',
        "Expected newline or end of document after a statement": "one key has one value; the decimal sign is a point",
    }
    hint = next((hint for word, hint in hints.items() if message.startswith(word)), "")
    return f"{message}; {hint}" if hint else message


def _json_reason(text: str, error: json.JSONDecodeError) -> str:
    """The message of json, and what is probably meant."""
    before, after = text[: error.pos].rstrip(), text[error.pos :].lstrip()
    if not text.strip():
        return "the file is empty"
    if not after:
        return f"{error.msg}; the file ends before its last brackets are closed"
    if after[0] in "}]" and before.endswith(","):
        return f"there is a comma before {after[0]!r}; remove it"
    if after.startswith(("//", "/*", "#")):
        return f"{error.msg}; JSON has no comments"
    if after[0] == "'":
        return f"{error.msg}; texts are in double quotes"
    return f"{error.msg}, not {after[:20].split()[0]!r}"


def _deepest(text: str) -> int:
    """The line where brackets are nested most deeply."""
    depth = deepest = 0
    line = found = 1
    for letter in text:
        if letter == "\n":
            line += 1
        elif letter in "[{":
            depth += 1
            if depth > deepest:
                deepest, found = depth, line
        elif letter in "]}":
            depth -= 1
    return found


def _suspect(text: str, error: Exception) -> int:
    """The line of a value that cannot be read: a key that is given twice, a constant, or a very long number."""
    words = re.findall(r"'([^']*)'|(NaN|-?Infinity)", str(error))
    for word, constant in words:
        places = [match.start() for match in re.finditer(re.escape(constant or json.dumps(word)), text)]
        if places:
            return text.count("\n", 0, places[-1]) + 1
    longest = max(re.finditer(r"[0-9_.eE+-]+", text), key=lambda match: len(match.group()), default=None)
    return 1 if longest is None else text.count("\n", 0, longest.start()) + 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} is given twice")
            seen.add(key)
    return made


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON; numbers must be finite")


def _fast(text: str, number: Callable[[str], Any]) -> dict[str, Any] | None:
    """The document, if every line is of the simple form that this library writes; None for any other text."""
    if "\r" in text or "\x00" in text:
        return None
    lines: list[str] = []
    tables: list[tuple[tuple[str, ...], list[str]]] = [((), lines)]  # path and lines of each
    nested: list[tuple[int, str, Any]] = []  # values of lists and tables in others: table, key, value
    headers: set[tuple[str, ...]] = set()
    fullmatch, split = _LINE.fullmatch, _INNER_KEY.split
    decode = json.JSONDecoder(parse_float=number, object_pairs_hook=_unique).decode
    for line in text.split("\n"):
        if not line or line[0] == "#":
            if line and not line.isprintable():  # TOML forbids control characters, also in comments
                return None
            continue
        match = fullmatch(line) or fullmatch(_COMMENT.sub("", line, 1))
        if match is None:
            match = _TOKENS.fullmatch(line)
            if match is None:
                return None
            key, value = match.groups()
            try:
                nested.append((len(tables) - 1, key.strip('"'), decode(_INNER.sub(_quoted, value))))
            except ValueError:
                return None
            lines.append(f"{_json_key(key)}: null")
            continue
        key, value, inline, header = match.groups()
        if key is None:
            path = tuple([part.strip('"') for part in _PART.findall(header)] if '"' in header else header.split("."))
            if path in headers or len(path) > MOST_PARTS:
                return None
            headers.add(path)
            lines = []
            tables.append((path, lines))
        elif inline is not None:
            parts = split(inline)  # "{ ", then keys and values in turn
            keys = parts[1::2]
            if len(set(keys)) != len(keys):
                return None
            parts[1::2] = [f'"{inner_key}": ' for inner_key in keys]
            lines.append(f"{_json_key(key)}: {''.join(parts)}")
        elif key[0] == '"':
            lines.append(f"{key}: {value}")
        else:
            lines.append(f'"{key}": {value}')
    content = ",".join(["{" + ",".join(lines) + "}" for _, lines in tables])
    try:
        values = json.JSONDecoder(parse_float=number).decode(f"[{content}]")
    except ValueError:
        return None
    for table, key, value in nested:
        values[table][key] = value
    return _nested(tables, values)


def _json_key(key: str) -> str:
    return key if key[0] == '"' else f'"{key}"'


def _quoted(match: re.Match[str]) -> str:
    """A key of an inline table as one of JSON; strings stay as they are."""
    return f'"{match[1]}": ' if match[1] else match[0]


def _nested(tables: Sequence[tuple[tuple[str, ...], list[str]]], values: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The document of tables by their paths; None if a key is given twice, or a value is extended by a header."""
    document: dict[str, Any] = {}
    made: set[int] = {id(document)}  # tables made by headers
    for (path, lines), found in zip(tables, values, strict=True):
        table = document
        for part in path:
            inner = table.get(part)
            if inner is None:
                inner = table[part] = {}
                made.add(id(inner))
            elif id(inner) not in made:  # a value, or an inline table, which cannot be extended
                return None
            table = inner
        if len(found) != len(lines) or not table.keys().isdisjoint(found):
            return None
        table.update(found)
    return document


def lines_of(text: str, as_json: bool, paths: Sequence[Path]) -> list[int]:
    """Lines of keys, or of the nearest table around each; 1 if the text cannot be scanned."""
    try:
        lines = _json_lines(text) if as_json else _TomlLines(text).find()
    except (IndexError, ValueError, RecursionError):
        lines = {}
    found = []
    unknown = 0 if _ENOUGH in lines else 1
    for path in paths:
        if unknown == 0 and path not in lines:  # its line is not known, and that of a table around it misleads
            found.append(0)
            continue
        known = (path[:length] for length in range(len(path), 0, -1) if path[:length] in lines)
        found.append(lines.get(next(known, ()), unknown))
    return found


_ENOUGH: Final = ("", -1)  # a path that no key has: the text has more tokens than are read


_WHOLE: Final = re.compile(  # a key and its value in one line
    rf'({_KEY}) = ((?>"[^"\\\[\]{{}}\x00-\x1f\x7f]*"|{_KEY} = |{_NUMBER}|true|false|[\[\]{{}}, ])++)\n'
)
_FLAT: Final = re.compile(r'\[(?:[^\[\]{}"\n]++|"[^"\\\[\]{}\n]*+"|\[[^\[\]{}"\n]*+\])*+\]')  # a list in one line
DEEPEST: Final = 16  # keys whose lines are kept: a path is not longer in any valid file
_TOML_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\r]+|#[^\n]*)|(?P<newline>\n)|(?P<long>\"\"\"(?:[^\"\\]|\\[\s\S]|\"(?!\"\"))*\"{3,5}"
    r"|'''(?:[^']|'(?!''))*'{3,5})|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')|(?P<open>[\[{])|(?P<close>[\]}])"
    r"|(?P<sign>[=,.])|(?P<bare>[^\s\[\]{}=,.#\"']+)"
)


class _TomlLines:
    """Finds the lines of all keys of a TOML text that the standard library has accepted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: dict[Path, int] = {}
        self.line, self.at = 1, 0
        self.table: Path = ()
        self.arrays: dict[Path, int] = {}
        self.stack: list[tuple[str, Path]] = []  # of inline tables and arrays of values
        self.index: list[int] = []
        self.key: list[str] = []
        self.path: Path = ()
        self.header = ""  # the brackets of a header that is open
        self.in_key = True

    def find(self) -> dict[Path, int]:
        """The line of each key."""
        tokens = 0
        while self.at < len(self.text):
            tokens += 1
            if tokens > MOST_TOKENS:
                self.lines[_ENOUGH] = 0
                break
            if self._read_whole_line():
                continue
            match = _TOML_TOKEN.match(self.text, self.at)
            if match is None:
                break
            kind, token = str(match.lastgroup), match.group()
            self.at = match.end()
            if kind == "newline":
                if not self.stack:
                    self.key, self.in_key, self.path = [], True, ()
            elif kind == "open" and self.in_key and not self.stack and not self.key:
                self.header += token
            elif self.header:
                self._read_header(kind, token)
            elif self.in_key and kind in ("bare", "string"):
                self.key.append(_key(kind, token))
            elif self.in_key and token == "=":
                self._begin_value()
            else:
                self._read_value(kind, token)
            self.line += token.count("\n")
        return self.lines

    def _note(self, path: Path, first: int) -> None:
        """The line of a path, and of its parents from a length on."""
        for length in range(first, min(len(path), DEEPEST) + 1):
            self.lines.setdefault(path[:length], self.line)

    def _read_whole_line(self) -> bool:
        """A line with one key and its value, which most lines are: its line is that of everything in it."""
        if not self.in_key or self.stack or self.key or self.header:
            return False
        whole = _WHOLE.match(self.text, self.at)
        if whole is None:
            return False
        value = whole[2]
        if value.count("[") != value.count("]") or value.count("{") != value.count("}"):
            return False
        if len(self.table) < DEEPEST:
            self.lines.setdefault((*self.table, whole[1]), self.line)
        self.line, self.at = self.line + 1, whole.end()
        return True

    def _read_header(self, kind: str, token: str) -> None:
        if kind in ("bare", "string"):
            self.key.append(_key(kind, token))
        elif kind == "close":
            self.header = self.header[:-1]
            if not self.header:
                self.table = tuple(self.key)
                if self.text[self.at - 2 : self.at] == "]]":
                    self.arrays[self.table] = self.arrays.get(self.table, -1) + 1
                    self.table = (*self.table, self.arrays[self.table])
                self._note(self.table, 1)
                self.key = []

    def _begin_value(self) -> None:
        base = self.stack[-1][1] if self.stack else self.table
        self.path = (*base, *self.key)
        self._note(self.path, len(base) + 1)
        self.key, self.in_key = [], False

    def _read_value(self, kind: str, token: str) -> None:
        stack, index = self.stack, self.index
        if kind == "open":
            if stack and stack[-1][0] == "[":
                self.path = (*stack[-1][1], index[-1])
                self.lines.setdefault(self.path, self.line)
            stack.append((token, self.path))
            index.append(0)
            self.in_key = token == "{"
        elif kind == "close":
            if stack:
                _, self.path = stack.pop()
                index.pop()
            self.in_key = False
        elif token == "," and stack:
            index[-1] += 1
            self.in_key, self.key = stack[-1][0] == "{", []
        elif stack and stack[-1][0] == "[":
            self.lines.setdefault((*stack[-1][1], index[-1]), self.line)


def _key(kind: str, token: str) -> str:
    if kind == "bare":
        return token
    try:
        return str(json.loads(token)) if token[0] == '"' else token[1:-1]
    except ValueError:  # an escape that only TOML has
        return token[1:-1]


_JSON_TOKEN: Final = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([\[{])|([\]}])|([:,])|([^\s\[\]{}:,"]+))')


def _json_lines(text: str) -> dict[Path, int]:
    """Lines of all keys and items of a JSON text."""
    found: dict[Path, int] = {}
    stack: list[list[Any]] = []  # [bracket, path, key or index]
    line, at, key = 1, 0, None
    tokens = 0
    while match := _JSON_TOKEN.match(text, at):
        tokens += 1
        if tokens > MOST_TOKENS:
            found[_ENOUGH] = 0
            break
        line += text.count("\n", at, match.start(match.lastindex or 0))
        at = match.end()
        string, opened, closed, sign, _ = match.groups()
        if stack and stack[-1][0] == "{" and string is not None and key is None:
            key = json.loads(string)
            stack[-1][2] = key
            found.setdefault((*stack[-1][1], key), line)
        elif opened:
            path = (*stack[-1][1], stack[-1][2]) if stack else ()
            found.setdefault(path, line)
            if flat := _FLAT.match(text, at - 1):  # all its items are in this line
                at = flat.end()
                continue
            stack.append([opened, path, 0])
            key = None
        elif closed:
            stack.pop()
        elif sign == ",":
            key = None
            if stack and stack[-1][0] == "[":
                stack[-1][2] += 1
        elif not sign and stack and stack[-1][0] == "[":
            found.setdefault((*stack[-1][1], stack[-1][2]), line)
        if string is not None:
            line += string.count("\n")
    return found


# -- from values to text ----------------------------------------------------------------------------------------------


def to_toml(document: Mapping[str, Any]) -> str:
    """Tables under headers, and one key per line, so that a changed value is one changed line."""
    lines = [f"{key} = {_value(value)}" for key, value in document.items() if not isinstance(value, dict)]
    for key, value in document.items():
        if isinstance(value, dict):
            _tables((key,), value, lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _tables(path: tuple[str, ...], table: Mapping[str, Any], lines: list[str]) -> None:
    inline = {key: value for key, value in table.items() if not _is_table((*path, key), value)}
    if inline or not table:
        lines += ["", f"[{'.'.join(map(_written_key, path))}]"]
        lines += [f"{_written_key(key)} = {_value(value)}" for key, value in inline.items()]
    for key, value in table.items():
        if key not in inline:
            _tables((*path, key), value, lines)


def _is_table(path: tuple[str, ...], value: Any) -> bool:
    """Whether a table has a header of its own."""
    if not isinstance(value, dict) or path[0] == "parameters":  # which stay in their order
        return False
    return len(path) == 2 or (len(path) == 3 and (path[0], path[2]) in (("bodies", "frames"), ("poses", "bodies")))


def _written_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    """A basic string; JSON's escapes are TOML's, and DEL is escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, Raw):
        return str.__str__(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return (
        f"{{ {', '.join(f'{_written_key(key)} = {_value(item)}' for key, item in value.items())} }}" if value else "{}"
    )


def to_json(document: Mapping[str, Any]) -> str:
    """The same document as JSON, one key per line."""
    return _json(document, "") + "\n"


def _json(value: Any, indent: str) -> str:
    if isinstance(value, Raw):
        return str.__str__(value)
    if isinstance(value, dict) and value:
        inner = indent + "  "
        items = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_json(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list):
        return f"[{', '.join(_json(item, indent) for item in value)}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
