"""``tierd brake`` as a process with a program in place of ``lctl``: SIGTERM and SIGKILL leave no rule behind."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import output_until
from tests.tierd.sense.loopback_server import answers_json, liar

NO_RULES = "regular_requests:\nCPT 0:\ndefault * 10000, ref 0\n"
POLICIES = ("\nregular_requests:\n  - name: tbf jobid\n    state: started\n    fallback: no\n    queued: 0\n"
            "    active: 0\n\n")
LCTL = r"""#!/bin/sh
set -- ${2#*=reg }  # of set_param nrs_tbf_rule=reg start NAME CONDITION rate=RATE rank=default
added="$2 $3 ${4#rate=}, ref 0\n"
[ "$1" = start ] || added=""
sed -i -e "/^$2 /d" -e "s/^default/$added&/" "$RULES"
"""
"""``lctl set_param`` for the agent's process: changes a file of rules as the kernel would, for one CPT."""
WANTED = json.dumps({"rules": [{"name": "tierd1_fs", "jobs": ["cp.1001"], "rate": 20}], "fs": "fs"})
"""What the leader answers."""


@dataclass
class Place:
    """An OSS with a leader."""

    folder: Path
    leader: str

    @property
    def rules(self) -> Path:
        return self.folder / "sys/kernel/debug/lustre/ost/OSS/ost_io/nrs_tbf_rule"

    @property
    def options(self) -> list[str]:
        return ["--root", str(self.folder), "--lctl", str(self.folder / "lctl")]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "RULES": str(self.rules)}

    @contextmanager
    def agent(self) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "tierd", "brake", "--leader", self.leader, *self.options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=self.environment) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with liar(answers_json(WANTED)) as leader:
        made = Place(tmp_path, leader.url)
        made.rules.parent.mkdir(parents=True)
        made.rules.write_text(NO_RULES)
        made.rules.with_name("nrs_policies").write_text(POLICIES)
        (tmp_path / "lctl").write_text(LCTL)
        (tmp_path / "lctl").chmod(0o755)
        yield made


def test_a_stale_rule_goes_at_the_start_and_that_of_the_agent_at_its_end(place: Place) -> None:
    place.rules.write_text(NO_RULES.replace("default", "tierd_F9 jobid={dd.0} 5, ref 0\ndefault"))
    with place.agent() as process:
        assert process.stderr is not None
        output_until(process.stderr, "nrs_tbf_rule: reg stop tierd_F9")
        output_until(process.stderr, "nrs_tbf_rule: reg start tierd1_fs jobid={cp.1001} rate=20 rank=default")
        assert "tierd1_fs jobid={cp.1001} 20" in place.rules.read_text()
        process.send_signal(signal.SIGTERM)
        output_until(process.stderr, "nrs_tbf_rule: reg stop tierd1_fs")
        assert process.wait(10) == 0
    assert place.rules.read_text() == NO_RULES


def test_after_a_kill_the_rule_goes(place: Place) -> None:
    with place.agent() as process:
        assert process.stderr is not None
        output_until(process.stderr, "nrs_tbf_rule: reg start tierd1_fs")
        process.kill()
        output_until(process.stderr, "nrs_tbf_rule: reg stop tierd1_fs")
    assert place.rules.read_text() == NO_RULES


def test_the_unit_removes_rules_that_are_left(place: Place) -> None:
    place.rules.write_text(NO_RULES.replace("default", "tierd_F9 jobid={dd.0} 5, ref 0\ndefault"))
    unit = (Path(__file__).parents[3] / "systemd/tierd-brake.service").read_text()
    (after,) = re.findall(r"^ExecStopPost=/opt/lustre-tierd/bin/(.+)$", unit, re.MULTILINE)
    subprocess.run([sys.executable, "-m", *shlex.split(after), *place.options], env=place.environment, check=True)
    assert place.rules.read_text() == NO_RULES


def test_without_a_leader_the_agent_says_what_is_missing() -> None:
    done = subprocess.run([sys.executable, "-m", "tierd", "brake"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--leader" in done.stderr
