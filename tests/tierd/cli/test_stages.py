"""``tierctl slurm``: one request of Slurm on standard input, one line as the answer, whatever happens."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tierd.cli.tierctl import main
from tierd.clock import SystemClock
from tierd.daemon.client import ControlError
from tierd.daemon.control import ControlServer
from tierd.integrations.slurm.command import GRACE_SECONDS, Connection, prolog, stage

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


class Time(SystemClock):
    """A clock that goes on while one waits."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> bool:
        self.seconds += seconds
        return False


class Tierd(Connection):
    """Answers in turn; an error is raised, and the last answer is kept."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.time = Time()
        super().__init__(str, self.time, 30.0)
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
    assert 60.0 + GRACE_SECONDS < tierd.time.seconds < 90.0
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
    assert endless.time.seconds < 6.0


def test_a_restarted_tierd_is_asked_again(tmp_path: Path) -> None:
    time = Time()
    with pytest.raises(ControlError, match="socket not found"):
        Connection((tmp_path / "none").__str__, time, 30.0).ask({"request": "status"})
    assert 30.0 <= time.seconds <= 32.0
