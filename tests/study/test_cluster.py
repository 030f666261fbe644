"""Studies on Dask: a scheduler and workers as processes of this machine, which die, join and leave."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from tests.study.models import fatal, same, slow, study, turned

HERE = Path(__file__).parents[2]
SECONDS = 120.0  # for anything of a cluster on a busy machine


def command(module, *args):
    """A process of Dask that ends with this test."""
    own = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2", "PYTHONPATH": str(HERE)}
    given = [sys.executable, "-m", module, *args]
    return subprocess.Popen(given, cwd=HERE, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def worker(address):
    options = ("--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard", "--death-timeout", "60")
    made = command("distributed.cli.dask_worker", address, *options)
    threading.Thread(target=made.stderr.read, daemon=True).start()
    return made


@contextmanager
def cluster(workers):
    """The address of a scheduler in another process, and its workers."""
    scheduler = command("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    made = []
    try:
        for line in scheduler.stderr:
            if found := re.search(r"(tcp://127\.0\.0\.1:\d+)", line):
                break
        threading.Thread(target=scheduler.stderr.read, daemon=True).start()
        made += [worker(found[1]) for _ in range(workers)]
        yield found[1], made
    finally:
        for process in (*made, scheduler):
            process.terminate()
        for process in (*made, scheduler):
            process.wait(30)


@pytest.mark.slow
def test_a_local_cluster_has_the_same_numbers_and_names_the_run_that_kills_its_worker(tmp_path):
    """The run whose process ends is found out; the others of its part, and all other parts, are finished."""
    m, rows = turned(), {"a": np.linspace(0.97, 1.01, 12)}
    rows["a"][8] = 1.03
    longest = rows["a"] > 1.02
    given = m.study(rows, {"A": fatal}, duration=0.1, step=2e-3)
    given.run(client="local", workers=2, size=6, path=tmp_path)
    assert given.missing == 0
    assert [one.run for one in given.failed] == np.flatnonzero(longest).tolist()
    assert {one.status for one in given.failed} == {"killed"} and "3 times" in given.failed[0].reason
    wanted = m.study(rows, ["final(A)"], duration=0.1, step=2e-3).run(workers=1)
    assert np.array_equal(given["A"][~longest], wanted["final(A)"][~longest])


@pytest.mark.slow
def test_a_scheduler_in_another_process_and_workers_that_die_and_join(tmp_path):
    with cluster(1) as (address, workers):
        made = study(60, outputs={"slow": slow})
        killed = threading.Event()

        def disturb(done, total):
            if done >= 10 and not killed.is_set():
                killed.set()
                workers.append(worker(address))  # it joins, and gets the model
                workers[0].send_signal(signal.SIGTERM)

        began = time.monotonic()
        made.run(client=address, size=2, path=tmp_path, progress=disturb)
        assert time.monotonic() - began < SECONDS and killed.is_set()
    assert same(made, study(60, outputs={"slow": slow}).run(workers=2))


def test_a_client_that_is_closed_is_refused():
    from distributed import Client

    client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None)
    client.close()
    with pytest.raises(cd.ModelError, match="closed"):
        study().run(client=client)
