"""Each program ends with a status and one line at most where nobody takes its output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LOV = TESTS / "captures/2.17.57/layouts/pfl2.lustre.lov.hex"
PROGRAMS = {
    "lustre-exporter": ["exporter", "--once", "--path.procfs=/dev", "--path.sysfs=/dev"],
    "tierd": ["tierd", "--check-config"],
    "tierctl": ["tierd.cli.tierctl", "layout", "--lov", str(LOV)],
}
ENDS = {
    ">&-": "{}: standard output: Bad file descriptor\n",
    ">/dev/full": "{}: standard output: No space left on device\n",
    "": "",  # as in: | head
}


@pytest.mark.parametrize(("program", "end", "unbuffered"), [
    *(("lustre-exporter", end, "") for end in ENDS),
    ("tierd", ">&-", ""), ("tierd", "", "1"), ("tierctl", ">/dev/full", "")])
def test_output_that_nobody_takes_is_a_status_and_one_line_at_most(program: str, end: str, unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe:
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {end}', "sh", sys.executable, "-m", *PROGRAMS[program]], stdout=pipe, text=True,
            stderr=subprocess.PIPE, check=False, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert (done.returncode, done.stderr) == (1, ENDS[end].format(program))


@pytest.mark.parametrize(("command", "status"), [
    (["tierd.cli.tierctl", "status", "--socket", "/none"], 1), (["exporter", "--jobs.limit=-1"], 2)])
def test_without_standard_error_no_complaint_is_output(command: list[str], status: int) -> None:
    done = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", *command], stdout=subprocess.PIPE,
                          check=False)
    assert (done.returncode, done.stdout) == (status, b"")


def test_a_name_that_the_locale_cannot_express_is_shown_escaped() -> None:
    program = "from lustre.standard_output import standard_output\nwith standard_output('x'): print('job \u4e2d')"
    out = subprocess.check_output([sys.executable, "-c", program], env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert out == b"job \\u4e2d\n"
