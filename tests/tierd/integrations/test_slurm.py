"""Slurm's jobs: a recorded answer, any bytes, the cache, programs and slurmrestd that fail; and ``tierctl slurm``."""

import io
import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import CAPTURES
from tests.tierd.later import Later, PassingClock
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.sense.loopback_server import answers_json, liar
from tierd.cli.tierctl import main
from tierd.daemon.client import ControlError
from tierd.daemon.control import ControlServer
from tierd.integrations.slurm.command import GRACE_SECONDS, Connection, prolog, stage
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
        self.later, self.clock = Later(), SettableClock(0.0)
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
    slurm.clock.at = 11.0
    slurm.jobs.jobs(["2_4"])
    assert slurm.later.run() == 1
    slurm.clock.at = 30.0
    slurm.answer = b'{"jobs": []}'
    assert set(slurm.jobs.jobs(["2_4"])) == {"2_4"}
    assert slurm.later.run() == 0
    slurm.clock.at = 80.0
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
        slurm.clock.at += 61.0
        slurm.jobs.jobs(["1"])
        assert slurm.later.run() == 1
        assert slurm.jobs.problem
        assert set(slurm.jobs.jobs(["1", "77"])) == {"1"}
        assert slurm.later.run() == 0  # it is left alone for a minute
    slurm.answer, slurm.clock.at = RECORDED, slurm.clock.at + 61.0
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


STAGING = {"id": 3, "job": "17", "user": "alice", "direction": "promote", "path": "/a", "state": "moving", "open": True,
           "succeeded": False, "finding": 1, "files": 1, "size_bytes": 9, "in_place": 0, "created_at": 0.0,
           "deadline_at": 60.0, "outcomes": {}, "left_out": {}, "sentence": "staged in 0 of 1 file"}
ENDED = STAGING | {"state": "ended", "open": False, "succeeded": True, "sentence": "staged in 1 of 1 file"}


def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data: bytes,
          socket: Path) -> tuple[int, str]:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    code = main(["slurm", "--socket", str(socket)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"do": "rm"}', b"\xff", b'{"do": 1}',
                                  b'{"do": ["stage"]}', b"[" * 100_000])
def test_a_malformed_request_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                        tmp_path: Path, data: bytes) -> None:
    code, out = asked(monkeypatch, capsys, data, tmp_path / "none")
    assert (code, out.count("\n")) == (1, 1)
    assert out.startswith("failed malformed request: ")


def test_without_tierd_the_answer_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                              tmp_path: Path) -> None:
    request = json.dumps({"do": "teardown", "job": "17", "patience_seconds": 0}).encode()
    code, out = asked(monkeypatch, capsys, request, tmp_path / "none")
    assert code == 0
    assert out.startswith("failed ")
    assert "socket not found" in out


def test_a_name_of_any_bytes_reaches_tierd(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                           tmp_path: Path) -> None:
    seen: list[Any] = []

    def handle(request: Any) -> Any:
        seen.append(request)
        return {"stagings": [ENDED]} if request["request"] == "stage" else {"sentences": ["done\n\x1b[31m"]}

    server = ControlServer(str(tmp_path / "s"), handle)
    request = b'{"do": "stage", "job": "17", "uid": 1, "gid": 1, "stages": [{"path": "/a\xff\\u000ab"}]}'
    try:
        assert asked(monkeypatch, capsys, request, tmp_path / "s") == (0, "ok done  [31m\n")
    finally:
        server.close()
    assert seen[0]["stages"] == [{"path": "/a\udcff\nb"}]


class Tierd(Connection):
    """Answers in turn; an error is raised, and the last answer is kept."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.time = PassingClock(0.0)
        super().__init__(str, self.time, 30.0)  # type: ignore[arg-type]
        self._answers = list(answers)
        self.requests: list[Any] = []

    def ask(self, request: Any) -> dict[str, Any]:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


REQUEST = {"job": "17", "uid": 1, "gid": 1, "user": "alice", "stages": []}


def test_a_staging_is_awaited_to_its_end() -> None:
    tierd = Tierd([{"stagings": [STAGING]}, {"stagings": [STAGING]}, {"stagings": [ENDED, STAGING | {"id": 2}]},
                   ControlError("summary")])
    assert stage(tierd, REQUEST) == "ok staged in 1 of 1 file"


def test_a_tierd_that_never_ends_a_staging_is_left() -> None:
    tierd = Tierd([{"stagings": [STAGING]}])
    assert stage(tierd, REQUEST) == "failed tierd did not end the staging by its deadline"
    assert 60.0 + GRACE_SECONDS < tierd.time.at < 90.0
    assert tierd.requests[-1]["request"] == "stage-cancel"


def test_a_staging_that_tierd_lost_has_failed() -> None:
    tierd = Tierd([{"stagings": [STAGING]}, {"stagings": []}, {"sentences": []}])
    assert stage(tierd, REQUEST) == "failed tierd no longer knows the staging"


def test_a_prolog_waits_for_the_layout_and_not_for_ever() -> None:
    waiting = {"ready": [], "waiting": ["/a"], "why_not": []}
    assert prolog(Tierd([waiting, waiting, {"ready": ["/a"], "waiting": [], "why_not": []}]), REQUEST) == (
        "ok /a has the layout that helped before")
    endless = Tierd([waiting])
    assert prolog(endless, REQUEST) == "ok /a gets the layout that helped before"
    assert endless.time.at < 6.0


def test_a_restarted_tierd_is_asked_again(tmp_path: Path) -> None:
    time = PassingClock(0.0)
    with pytest.raises(ControlError, match="socket not found"):
        Connection((tmp_path / "none").__str__, time, 30.0).ask({"request": "status"})  # type: ignore[arg-type]
    assert 30.0 <= time.at <= 32.0
