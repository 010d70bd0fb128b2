"""Messages survive the wire; what is malformed, forged or of a later version is refused."""

import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.logged import logged
from tierd.act.dispatch import RemoteMover, RemoteStandby
from tierd.act.movers.moves import MoveResult
from tierd.cluster import messages
from tierd.cluster.messages import FileResult, FileToMove, MoveMessage, Permit, ResultMessage, WorkHint

FILE = FileToMove(7, "[0x200000402:0x14:0x0]", "/d/a", 100, "abc")
MOVE = MoveMessage("3-7-1", "lustre", 3, 2, "lustre-OST0004", 1060.0, "layout", (FILE,))
RESULT = ResultMessage("3-7-1", "lustre", 3, "m1", 1, (FileResult(7, FILE.fid, MoveResult.DONE),), 0.5)
EVERY = [MOVE, RESULT, Permit(3, 2, "pause"), WorkHint(("lustre-OST0004",)),
         RemoteMover("m1", "host", "lease", 4, 2.0, under_way={"lustre-OST0004": 3}, nids=("10.0.0.5@tcp",)),
         RemoteStandby("b", "host", 2.0, "host a", 3, 7, 0, 0.0)]


@pytest.mark.parametrize("message", EVERY, ids=lambda message: type(message).__name__)
def test_unknown_fields_are_ignored_and_later_versions_refused(message: object) -> None:
    fields = json.loads(messages.encode(message))
    later = fields | {"of_a_later_release": 1}
    assert messages.decode(type(message), json.dumps(later).encode()) == message
    with pytest.raises(ValueError, match="version"):
        messages.decode(type(message), json.dumps(fields | {"version": 2}).encode())
    needed = next(iter(fields))
    with pytest.raises(ValueError, match=needed):
        messages.decode(type(message), json.dumps({k: v for k, v in fields.items() if k != needed}).encode())


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_with_a_value_error(data: bytes) -> None:
    for kind in (MoveMessage, ResultMessage, Permit, WorkHint, RemoteMover, RemoteStandby):
        with pytest.raises(ValueError, match="not a"):
            messages.decode(kind, data)
    with pytest.raises(ValueError, match="a message of"):
        messages.decode(Permit, messages.encode(Permit(3, 2)) + b" " * messages.MAX_BYTES)


def test_the_longest_names_fit_into_a_message() -> None:
    """Movers refused it, and the failures of its files opened the circuit breaker: a user could stop tierd."""
    path = messages.path_to_wire("/" + "/".join(["\x01" * 255] * 15) + "/" + "\x01" * 255)
    full = replace(MOVE, files=(replace(FILE, path=path, objects="0" * 32),) * messages.FILES_PER_MESSAGE)
    assert messages.decode(MoveMessage, messages.encode(full)) == full


def test_only_the_holder_of_the_claim_can_sign() -> None:
    data = messages.signed(messages.encode(MOVE), "host=a nonce=1")
    assert messages.decode(MoveMessage, messages.verified(data, "host=a nonce=1")) == MOVE
    assert messages.unverified(MoveMessage, data) == MOVE
    forged, by_nobody = data.replace(b"OST0004", b"OST0005"), messages.signed(messages.encode(MOVE), "")
    for each, secret in ((data, "host=a nonce=2"), (data, ""), (forged, "host=a nonce=1"), (by_nobody, "")):
        with pytest.raises(ValueError, match="signature"):
            messages.verified(each, secret)


def test_an_invalid_description_is_logged_once() -> None:
    """A mover of a newer release filled the log: it is asked about every two seconds."""
    said = logged()
    for seen in (1.0, 2.0):
        newer = json.dumps({"name": "m", "host": "h", "engine": "lease", "threads": 1, "seen": seen, "version": 2})
        bucket = SimpleNamespace(all=lambda newer=newer: {"m": newer.encode(), "n": b"{"})
        assert messages.descriptions(bucket, RemoteMover) == ()  # type: ignore[arg-type]
    assert [sentence.split(" sent ")[0] for sentence in said] == ["the description that m", "the description that n"]


@given(st.binary(max_size=60).filter(lambda name: b"\0" not in name and not {b".", b".."} & set(name.split(b"/"))))
def test_a_path_of_any_bytes_survives(name: bytes) -> None:
    path = "/" + os.fsdecode(name)
    assert messages.path_from_wire(json.loads(json.dumps(messages.path_to_wire(path)))) == path


@pytest.mark.parametrize("text", ["d/a", "", "/d/../etc/passwd", "/d/./a", "/d\0a", "/\u4e00"])
def test_a_path_that_does_not_begin_at_the_root_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        messages.path_from_wire(text)
