"""Changelogs: the records of what was just done, on each MDT, and the echo of our own moves."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from lustre.changelog.record import Record, RecordType, decode
from tests.acceptance.site import Site, long_ago
from tierd.act.movers.moves import Move, Mover, MoveResult
from tierd.sense import parameters

LONGEST = 1_000_000


def records(site: Site, mdt: str, after: int) -> list[Record]:
    found: list[Record] = []
    while data := site.filesystem.changelog(mdt, after):
        batch, consumed = decode(data)
        assert consumed == len(data), "the device gives whole records"
        found += batch
        if len(found) > LONGEST:
            pytest.skip(f"{mdt} has more than {LONGEST} records waiting: clear them first")
        after = batch[-1].index
    return found


def last_index(site: Site, mdt: str) -> int:
    found = records(site, mdt, -1)
    return found[-1].index if found else 0


@pytest.fixture(params=[0, 1])
def mdt(request: pytest.FixtureRequest, site: Site) -> int:
    """An MDT that keeps records. A reader must be registered for it."""
    if request.param >= site.mdt_count:
        pytest.skip("there is no such MDT")
    name = f"MDT{request.param:04x}"
    if not os.path.exists(f"/dev/changelog-{site.mount.fsname}-{name}"):
        pytest.skip("no changelog device on this client")
    before = last_index(site, name)
    probe = site.directory(f"probe-{time.time_ns()}", mdt=request.param)
    (probe / "file").touch()
    time.sleep(1)
    if last_index(site, name) == before:
        pytest.skip(f"{name} keeps no changelog: lctl --device {site.mount.fsname}-{name} changelog_register")
    return int(request.param)


def test_records_of_what_was_just_done(site: Site, mdt: int) -> None:
    place = site.directory(f"log-{mdt}", mdt=mdt)
    name = f"MDT{mdt:04x}"
    before = last_index(site, name)
    (place / "a").write_bytes(b"data")
    fid = site.filesystem.status(site.name(place / "a")).fid
    os.rename(place / "a", place / "new\nname")
    os.link(place / "new\nname", place / "second")
    os.unlink(place / "second")
    time.sleep(1)
    found = records(site, name, before)
    assert [record.index for record in found] == sorted({record.index for record in found})
    created = [record for record in found if record.type is RecordType.CREATE and record.name == b"a"]
    renamed = [record for record in found if record.type is RecordType.RENAME and record.name == b"new\nname"]
    assert [record.target for record in created] == [fid]
    assert [(record.source, record.source_name) for record in renamed] == [(fid, b"a")]
    assert abs(created[0].time - time.time()) < 300


def test_what_changelog_users_say_is_what_can_be_read(site: Site, mdt: int) -> None:
    name = f"MDT{mdt:04x}"
    state = parameters.changelogs(site.tree).get(f"{site.mount.fsname}-{name}")
    if state is None:
        pytest.skip("this node is not its server")
    assert state.users
    assert state.last_index is not None
    assert state.last_index <= last_index(site, name)
    assert state.recorded is None or {"CREAT", "CLOSE", "UNLNK", "RENME", "LYOUT"} <= state.recorded


def test_the_same_records_as_lfs_prints(site: Site, mdt: int) -> None:
    name = f"MDT{mdt:04x}"
    text = subprocess.run(["lfs", "changelog", f"{site.mount.fsname}-{name}"], capture_output=True, check=True).stdout
    indices = {int(line.split()[0]) for line in text.split(b"\n") if line.split(b" ")[0].isdigit()}
    ours = {record.index for record in records(site, name, -1)}
    assert max(indices - ours, default=-1) < min(ours)  # others may clear meanwhile


def test_reading_continues_where_it_ended(site: Site, mdt: int) -> None:
    name = f"MDT{mdt:04x}"
    found = records(site, name, -1)
    middle = found[len(found) // 2].index
    assert [r.index for r in records(site, name, middle)] == [r.index for r in found if r.index > middle]
    assert records(site, name, found[-1].index + 1000) == []


def test_a_move_echoes_as_one_change_of_layout(site: Site, engine: Mover, engine_name: str, mdt: int) -> None:
    place: Path = site.directory(f"echo-{engine_name}-{mdt}", mdt=mdt) / "a"
    place.write_bytes(b"data")
    long_ago(place)
    time.sleep(1)
    name = f"MDT{mdt:04x}"
    before = last_index(site, name)
    (outcome,) = engine.move([Move(site.name(place), site.in_pool(site.flash))])
    assert outcome.result is MoveResult.DONE
    time.sleep(1)
    fid = site.filesystem.status(site.name(place)).fid
    types = [record.type for record in records(site, name, before) if record.target == fid]
    assert types.count(RecordType.LAYOUT) == 1
    assert not set(types) & {RecordType.UNLINK, RecordType.CREATE, RecordType.RENAME, RecordType.TRUNCATE}
