"""What tierd is called by the kernel, which makes the job id of its own work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tierd.config.settings import Settings
from tierd.daemon.process import set_process_name

KNOWN = """
from pathlib import Path
from threading import Thread
from tierd.daemon.process import set_process_name
set_process_name('tierd', Path('/proc/self/comm'))
Thread(target=lambda: print(Path('/proc/thread-self/comm').read_text().strip() + '.0')).start()
"""


@pytest.mark.skipif(not Path("/proc/thread-self/comm").exists(), reason="no procfs")
def test_threads_of_a_process_however_started_have_a_job_id_of_ours() -> None:
    reported = subprocess.run([sys.executable, "-c", KNOWN], capture_output=True, text=True, check=True).stdout.strip()
    assert reported in Settings().own_jobs


def test_no_procfs_is_no_reason_not_to_start(tmp_path: Path) -> None:
    set_process_name("tierd", tmp_path / "absent" / "comm")
    assert not (tmp_path / "absent").exists()
