"""The process that reads STEP files is limited, and ends with the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from cardan.cad import child

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")
BEGUN = f"import sys; sys.path.insert(0, {os.path.dirname(child.__file__)!r}); import child; "


@LINUX
def test_the_reader_is_limited_in_memory_and_processor_time():
    """Also where it does not return: an endless loop, and an allocation of 8 GiB."""
    code = BEGUN + "child._limit(1)\nwhile True: pass"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert done.returncode < 0 and time.monotonic() - began < 30.0
    code = BEGUN + "child._limit(9); bytearray(8 << 30)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "MemoryError" in done.stderr


@LINUX
def test_the_reader_ends_with_its_parent(tmp_path):
    """The parent is killed, so that it cannot end its child itself."""
    file = tmp_path / "pid"
    inner = (
        BEGUN + f"import os, time; child._end_with(os.getppid()); open({str(file)!r}, 'w').write(str(os.getpid())); "
    )
    inner += "time.sleep(60)"
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}])"]
    )
    while not (file.exists() and file.read_text()):
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    pid, began = int(file.read_text()), time.monotonic()
    while _is_running(pid):
        assert time.monotonic() - began < 10.0
        time.sleep(0.02)


def _is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
