"""Slurm's jobs: a recorded answer, any bytes, the cache, programs and slurmrestd that fail."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import CAPTURES
from tests.tierd.later import Later, Time
from tests.tierd.sense.loopback_server import answers_json, liar
from tierd.integrations.slurm.source import MAX_JOBS, SlurmJobs, SlurmSettings, parse, reader, validated
from tierd.sense.http_client import SourceError

RECORDED = (CAPTURES / "slurm" / "squeue-22.05.8.json").read_bytes()
SQUEUE = SlurmSettings("squeue")


def test_a_recorded_answer_of_slurm_22_05() -> None:
    words = {(job.id, job.task): job.words for job in parse(RECORDED)}
    assert words == {
        (1, ""): "nobody: train, partition batch",
        (3, "2_3"): 'nobody: odd "naïme", account chem, partition batch',
        (2, "2_4"): 'nobody: odd "naïme", account chem, partition batch'}


def test_the_number_of_nodes_in_each_form() -> None:
    assert [job.nodes for job in parse(RECORDED)] == [1, 1, 1]
    assert [job.nodes for job in parse((CAPTURES / "slurm" / "sacct-22.05.8.json").read_bytes())] == [1]
    later = {"job_id": 7, "node_count": {"set": True, "infinite": False, "number": 16}}
    absent = {"job_id": 8}
    assert [job.nodes for job in parse(json.dumps({"jobs": [later, absent]}).encode())] == [16, None]
    slurm = Slurm()
    slurm.jobs.jobs(["1"])
    slurm.later.run()
    assert {name: job.nodes for name, job in slurm.jobs.jobs(["1", "ior.1002"]).items()} == {"1": 1}


def test_names_of_any_bytes_are_text_and_directories_keep_their_bytes() -> None:
    """Anybody may call a job so. One such job must not hide the names of all others, nor stop the metrics."""
    odd = (b'{"job_id": 7, "name": "a\xff\xed\xa0\x80b", "user_name": "\\ud800", "account": "c\xc3\xa4", '
           b'"current_working_directory": "/s/\xff"}')
    half = b'{"job_id": 8, "name": "x", "current_working_directory": "/s/\\ud800"}'
    one, other = parse(b'{"jobs": [%s, %s]}' % (odd, half))
    assert (one.name, one.user, one.account) == ("a????b", "?", "cä")
    assert os.fsencode(one.directory) == b"/s/\xff"
    assert other.directory == ""
    for job in (one, other):
        job.words.encode()


def test_an_impossible_job_number_is_left_out() -> None:
    assert parse(b'{"jobs": [{"job_id": 1%s}]}' % (b"0" * 30)) == []


def test_a_recorded_answer_of_slurmdbd() -> None:
    (job,) = parse((CAPTURES / "slurm" / "sacct-22.05.8.json").read_bytes())
    assert (job.id, job.task, job.uid, job.words) == (1, "", None, "nobody: train, account chem, partition batch")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8)
FIELDS = st.sampled_from(("job_id", "name", "user_name", "user", "array", "array_job_id", "array_task_id", "account",
                          "node_count", "allocation_nodes", "partition", "user_id", "current_working_directory",
                          "number", "set"))


@given(st.dictionaries(FIELDS, VALUES, max_size=8))
def test_a_job_with_any_values_is_a_job_or_left_out(entry: Mapping[str, object]) -> None:
    good = json.loads(RECORDED)["jobs"][0]
    found = parse(json.dumps({"jobs": [{**good, **entry}, good, 7]}).encode())
    assert 1 <= len(found) <= 2
    assert all(isinstance(job.words, str) for job in found)


@given(st.binary(max_size=50))
def test_any_bytes_are_an_answer_or_an_error(data: bytes) -> None:
    known = r"[Ee]xpect|answer without jobs|decode|Extra data|control|delimiter|escape|Unterminated string"
    with pytest.raises(ValueError, match=known):
        parse(data)


class Slurm:
    """The cache over answers that a test gives."""

    def __init__(self, settings: SlurmSettings = SQUEUE) -> None:
        self.answer: bytes | OSError = RECORDED
        self.asked: list[Collection[int]] = []
        self.later, self.clock = Later(), Time()
        self.jobs = SlurmJobs(settings, self._read, self.clock, self.later)

    def _read(self, ids: Collection[int]) -> bytes:
        self.asked.append(ids)
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


def test_jobs_are_looked_up_in_the_background_and_remembered() -> None:
    slurm = Slurm()
    assert slurm.jobs.jobs(["1", "2_3", "ior.1002", "99"]) == {}
    assert slurm.later.run() == 1
    assert slurm.asked == [[1, 2, 99]]
    found = slurm.jobs.jobs(["1", "2_3", "ior.1002", "99", "2_4"])
    assert set(found) == {"1", "2_3"}
    assert slurm.later.run() == 0  # soon enough
    slurm.clock.time = 11.0
    slurm.jobs.jobs(["2_4"])
    assert slurm.later.run() == 1
    slurm.clock.time = 30.0
    slurm.answer = b'{"jobs": []}'
    assert set(slurm.jobs.jobs(["2_4"])) == {"2_4"}
    assert slurm.later.run() == 0
    slurm.clock.time = 80.0
    slurm.jobs.jobs(["2_4"])
    assert slurm.later.run() == 1
    assert set(slurm.jobs.jobs(["1", "2_4"])) == {"1", "2_4"}  # ended, and still known
    assert list(slurm.jobs.last(1)) == ["2_4"]


def test_a_slurm_that_fails_keeps_what_is_known() -> None:
    slurm = Slurm()
    slurm.jobs.jobs(["1"])
    slurm.later.run()
    for answer in (SourceError("squeue: no"), b"[]", b"nonsense", b"[" * 100_000):
        slurm.answer = answer
        slurm.clock.time += 61.0
        slurm.jobs.jobs(["1"])
        assert slurm.later.run() == 1
        assert slurm.jobs.problem
        assert set(slurm.jobs.jobs(["1", "77"])) == {"1"}
        assert slurm.later.run() == 0  # it is left alone for a minute
    slurm.answer, slurm.clock.time = RECORDED, slurm.clock.time + 61.0
    slurm.jobs.jobs(["1"])
    slurm.later.run()
    assert not slurm.jobs.problem


def test_the_number_of_remembered_jobs_is_bounded() -> None:
    slurm = Slurm()
    slurm.answer = json.dumps({"jobs": [{"job_id": number} for number in range(3 * MAX_JOBS)]}).encode()
    slurm.jobs.jobs(str(number) for number in range(3 * MAX_JOBS))
    slurm.later.run()
    assert len(slurm.jobs.last(3 * MAX_JOBS)) == MAX_JOBS
    assert slurm.jobs.jobs(["1"]) == {}


@pytest.mark.parametrize(("expression", "jobs", "known"), [
    (r".+\.(\d+)", ["python.1", "1"], {"python.1"}),
    (r"(\d+)|login\.\w+", ["1", "login.alice"], {"1"}),  # a part without the group gives no number
])
def test_a_job_id_of_another_form_is_read_with_an_expression(expression: str, jobs: list[str], known: set[str]) -> None:
    slurm = Slurm(validated(replace(SQUEUE, job_id=expression)))
    slurm.jobs.jobs(jobs)
    assert slurm.later.run() == 1
    assert set(slurm.jobs.jobs(jobs)) == known


@pytest.mark.parametrize(("settings", "words"), [
    (SlurmSettings("slurmrestd"), "give the whole address"), (SlurmSettings("squeue", url="http://a"), "only"),
    (SlurmSettings(job_id="("), "job_id"), (SlurmSettings(job_id="1"), "into a group")])
def test_a_mistake_in_the_settings_is_reported(settings: SlurmSettings, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        validated(settings)


def program(folder: Path, name: str, body: str) -> Mapping[str, str]:
    """An environment with a program that stands in for one of Slurm."""
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_sacct_is_asked_for_the_jobs_that_are_shown(tmp_path: Path) -> None:
    environment = program(tmp_path, "sacct", 'echo "$@"')
    read = reader(SlurmSettings("sacct"), environment)
    assert read([7, 9]) == b"--json --allocations --allusers --jobs=7,9\n"


@pytest.mark.parametrize(("body", "words"), [
    ("echo no such cluster >&2; exit 3", "squeue: exit status 3: no such cluster"),
    ("exec sleep 100", "squeue: no answer within 0.3 s"),
    ("sleep 100; true", "squeue: no answer within 0.3 s"), ("exec yes", "squeue: more than 1000 bytes"),
    ("head -c 300000 /dev/zero >&2; echo '{}'", "")])
def test_a_program_that_misbehaves_is_an_error(tmp_path: Path, body: str, words: str) -> None:
    environment = program(tmp_path, "squeue", body)
    limits = {} if "zero" in body else {"timeout_seconds": 0.3} if "sleep" in body else {"max_bytes": 1000}
    read = reader(replace(SQUEUE, **limits), environment)
    if not words:
        assert read([]) == b"{}\n"
        return
    with pytest.raises(SourceError, match=words):
        read([])


def test_a_node_without_slurm_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="squeue: No such file"):
        reader(SQUEUE, {"PATH": str(tmp_path)})([])


def test_slurmrestd_gets_the_token_in_its_own_header(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("geheim\n")
    with liar(answers_json(RECORDED.decode())) as server:
        settings = SlurmSettings("slurmrestd", f"{server.url}/slurm/v0.0.38/jobs", "tierd", str(tmp_path / "token"))
        assert len(parse(reader(validated(settings), {})([]))) == 3
    (request,) = server.requests
    assert request.startswith("GET /slurm/v0.0.38/jobs HTTP/1.1")
    assert "X-SLURM-USER-TOKEN: geheim\r\n" in request
    assert "X-SLURM-USER-NAME: tierd\r\n" in request
