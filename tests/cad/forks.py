"""The process that reads STEP files, forked from one that has loaded OCP: loading takes a second for each file.

A fork does all that the process of the library does, and may crash or run out of time like it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from typing import Any


class Forks:
    """Takes the place of the module ``subprocess`` in ``cardan.cad.step``."""

    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, script: str) -> None:
        self._script = script
        self.used: list[tuple[float, float]] = []  # of each fork: its processor time [s], its largest memory [MB]
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def close(self) -> None:
        self._server.communicate(timeout=60)

    def run(self, command: list[str], *, timeout: float, **options: Any) -> subprocess.CompletedProcess[str]:
        if command[1] != self._script:
            return subprocess.run(command, timeout=timeout, **options)  # noqa: PLW1510
        assert self._server.stdin is not None and self._server.stdout is not None
        with tempfile.TemporaryFile("w+", errors="replace") as stderr:
            self._server.stdin.write(json.dumps([command[1:], os.getpid(), stderr.fileno()]) + "\n")
            process = int(self._server.stdout.readline())
            is_late = not select.select([self._server.stdout], [], [], timeout)[0]
            if is_late:
                os.kill(process, signal.SIGKILL)
            status, seconds, megabytes = map(float, self._server.stdout.readline().split())
            self.used.append((seconds, megabytes))
            if is_late:
                raise subprocess.TimeoutExpired(command, timeout)
            stderr.seek(0)
            return subprocess.CompletedProcess(command, int(status), "", stderr.read())


def serve() -> None:
    """For each line of stdin: the number of the forked process, and then how it ended, and what it used."""
    import runpy

    import numpy  # noqa: F401
    from OCP.STEPCAFControl import STEPCAFControl_Reader

    STEPCAFControl_Reader()  # makes the tables of all entities
    for line in sys.stdin:
        arguments, owner, descriptor = json.loads(line)
        process = os.fork()
        if process == 0:
            target = os.open(f"/proc/{owner}/fd/{descriptor}", os.O_WRONLY)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(target, 1)
            os.dup2(target, 2)
            sys.argv = [*arguments[:2], str(os.getppid()), *arguments[3:]]  # the parent is this server
            sys.path.insert(0, os.path.dirname(arguments[0]))  # as Python does for a script
            runpy.run_path(arguments[0], run_name="__main__")
            sys.exit(0)
        print(process, flush=True)
        _, status, used = os.wait4(process, 0)
        seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0
        print(os.waitstatus_to_exitcode(status), seconds, megabytes, flush=True)


if __name__ == "__main__":
    serve()
