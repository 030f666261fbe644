"""What a server of the workbench keeps for this user alone: its token, and a file that leads a browser to it.

Both are in a folder that only the user can enter (0700), and are new files of the user (0600).  What another user may
have put there is not read: a link, a file of another owner, or one that others can read.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

from cardan.kernel import cache

FOLDER: Final = "workbench"
KEPT_SECONDS: Final = 86_400.0  # of files of other ports
_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_TOKEN: Final = re.compile(rb"[A-Za-z0-9_-]{32}")


def _folder() -> Path | None:
    """The folder, or None where the user has none that is private."""
    if cache.CACHE_DIRECTORY is None:
        return None
    try:
        return cache.private(Path(cache.CACHE_DIRECTORY) / FOLDER)
    except OSError:
        return None


def read(port: int) -> str:
    """The token of the server that was on a port before; "" if there is none that only this user could write."""
    folder = _folder()
    if folder is None:
        return ""
    try:
        handle = os.open(folder / f"{port}.token", _READ)
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            is_ours = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
            content = file.read(100) if is_ours and stat.S_ISREG(found.st_mode) else b""
    except OSError:
        return ""
    return content.decode() if _TOKEN.fullmatch(content) else ""


def write(port: int, token: str) -> None:
    """Keep the token of a server; without a private folder, pages do not reconnect after a restart."""
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        for old in folder.iterdir():
            if old.lstat().st_mtime < time.time() - KEPT_SECONDS:
                old.unlink()
    _replace(folder / f"{port}.token", token)


def redirect(port: int, address: str) -> Path | None:
    """A page that leads to an address; None where no private file can be made.

    The command that starts a browser is seen by all users; it has the path of this page in place of the address.
    """
    folder = _folder()
    if folder is None:
        return None
    link = html.escape(address, quote=True)
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}">'
    return _replace(folder / f"{port}.html", f'{text}<title>Cardan</title><a href="{link}">Open the workbench</a>\n')


def _replace(path: Path, text: str) -> Path | None:
    """Write a new file in the place of an old one; None if that is not possible."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with open(handle, "wb") as file:
                file.write(text.encode())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError:
        return None
    return path
