"""The scripts of the repository that change something on a machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

VENV = Path(__file__).parents[2] / "scripts" / "venv.sh"


def test_making_an_environment_installs_no_system_package(tmp_path: Path) -> None:
    called = tmp_path / "called"
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("apt-get", "apt", "dnf", "sudo"):
        (folder / name).write_text(f"#!/bin/sh\necho $0 >> {called}\n")
        (folder / name).chmod(0o755)
    python = folder / "python"  # one that can make no environment, whichever way
    python.write_text(f'#!/bin/sh\ncase "$*" in *venv*|*virtualenv*|*pip*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(["sh", str(VENV), str(tmp_path / "made"), "."], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": str(python)})
    assert done.returncode == 1
    assert "Run: apt-get install python3-venv" in done.stderr
    assert not called.exists()
    assert not (tmp_path / "made").exists()
