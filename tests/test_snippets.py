"""The snippets of README and quick start work in the order in which they stand.

Paths of the machine are below a folder of the test. Programs that need Lustre, root or the network do nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import TOOLS, program

ROOT = Path(__file__).parents[1]
NOTHING = ("systemctl", "lctl", "docker", "make", "ln", "python3", "pip")
NOT_RUN = re.compile(r"tierctl (?:simulate|evaluate|status|top|whatif)"  # minutes, a daemon, or Prometheus
                     r"|tierd --config tierd.toml &|lustre-exporter +# serve")  # without an end


def blocks(page: Path) -> list[str]:
    """Indented blocks outside fences, without their indent."""
    without_fences = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"(?:^ {4}.*\n(?:\n(?= {4}))*)+", without_fences, re.MULTILINE)
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE) for block in found if "►" not in block]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the files of the source, and the programs that do nothing in ``stubs``."""
    folder, stubs = tmp_path / "source", tmp_path / "stubs"
    folder.mkdir()
    stubs.mkdir()
    for name in ("alerts", "dashboards", "packaging", "systemd", "tests"):
        (folder / name).symlink_to(ROOT / name)
    for name in NOTHING:
        (stubs / name).write_text("#!/bin/sh\n")
    (stubs / "less").write_text("#!/bin/sh\nexec cat\n")
    for stub in stubs.iterdir():
        stub.chmod(0o755)
    return folder


def run(block: str, checkout: Path) -> str:
    """What a block of commands prints."""
    machine = checkout.parent / "machine"
    block = block.replace("/opt/lustre-tierd/bin/", "").replace(" --online", "")
    block = re.sub(r"(?<![\w.$}/])/(etc|opt|usr|var)/", rf"{machine}/\1/", block)
    lines = [line for line in block.splitlines() if not NOT_RUN.match(line)]
    path = ":".join((f"{checkout.parent}/stubs", str(Path(sys.executable).parent), str(TOOLS), os.environ["PATH"]))
    done = subprocess.run(["sh", "-e"], input="\n".join(lines), cwd=checkout, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "EDITOR": "true"})
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    return done.stdout


def test_commands_of_the_readme_run(checkout: Path) -> None:
    said = "".join(run(block, checkout) for block in blocks(ROOT / "README.md"))
    assert "lfs setstripe -E 2M" in said, "the replay plans nothing"
    assert "lustre_llite_read_bytes_total{" in said
    assert said.rstrip().endswith("OK")


def test_commands_and_settings_of_the_quick_start_run(checkout: Path) -> None:
    program("promtool")
    etc = checkout.parent / "machine" / "etc"
    (etc / "prometheus").mkdir(parents=True)
    said = ""
    for number, block in enumerate(blocks(ROOT / "docs" / "quickstart.md")):
        if block.startswith("rule_files:"):
            (etc / "prometheus" / "prometheus.yml").write_text(block)
        elif block.startswith("["):
            (checkout / f"{number}.toml").write_text(block)
            said += run(f"tierd --config {number}.toml --check-config", checkout)
        else:
            said += run(block, checkout)
    assert "SUCCESS" in said, "promtool has not checked the configuration"
    assert len(re.findall(r": OK$", said, re.MULTILINE)) == 2, said


def test_the_command_for_a_key_of_the_cluster_prints_seed_and_public_key(checkout: Path) -> None:
    command = re.search(r"/opt/lustre-tierd/bin/python -c '[^']+'", (ROOT / "docs" / "cluster.md").read_text())
    assert command is not None
    assert re.fullmatch(r"SU\w+ U\w+\n", run(command[0], checkout))
