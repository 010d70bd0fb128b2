"""What belongs on flash, what does not, and components there that are too small."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from tests.tierd.policies.views import FLASH, GB, POOLS, filled, halves, look, reads_whole
from tests.tierd.worlds import TARGETS, small_io, stream
from tierd.model import DirectoryActivity, Facts, Finding, JobLoad, NamespaceLoad, StoredFile, TargetFill
from tierd.policies import cold_on_flash, flash_pressure, hot_small_files, outgrown_component, small_random_io

DAY = 86_400.0
KIB = 1 << 10
NOW = 120.0
"""End of the newest window."""


def pressure(used: float, growth: float = 0.0, active: bool = False) -> list[Finding]:
    return look(flash_pressure.POLICY, halves(stream("s.1", 40, seconds=30.0, targets=FLASH)),
                Facts(pools=POOLS, fill=filled(used, growth=growth)),
                {("flash-pressure", "", "flash")} if active else ())


def test_a_full_pool_is_reported_with_who_writes_there() -> None:
    (found,) = pressure(0.85)
    assert "pool flash is 85% full (30.0 GB free" in found.sentence
    assert "writes: 40.0 MB/s by s.1" in found.sentence
    assert found.advice_only
    assert "spill_target=hdd" in found.advice[1].command


@pytest.mark.parametrize(("used", "active", "reported"), [
    (0.75, False, False), (0.75, True, True), (0.65, True, False), (0.8, False, True)])
def test_it_begins_higher_than_it_ends(used: float, active: bool, reported: bool) -> None:
    assert bool(pressure(used, active=active)) == reported


def test_a_pool_that_will_be_full_within_the_hour_is_reported() -> None:
    (found,) = pressure(0.6, growth=20e6)
    assert "in the last minutes the pool grew by 40.0 MB/s, which would fill it in 33 min" in found.sentence
    assert pressure(0.2, growth=40e6) == [], "files that come and go on an empty pool"
    assert pressure(0.6, growth=1e6) == pressure(0.6, growth=-20e6) == []


@pytest.mark.parametrize("facts", [Facts(pools=POOLS), Facts(fill=filled(0.99))])
def test_a_pool_of_unknown_space_is_not_reported(facts: Facts) -> None:
    assert look(flash_pressure.POLICY, facts=facts) == []


def stored(number: int, days: float, pools: tuple[str, ...] = ("flash",)) -> StoredFile:
    return StoredFile(Fid(0x200000401, number, 0), f"/proj/old/f{number}", GB, pools, NOW - days * DAY,
                      Layout((Component(pool=pools[0]),), composite=False))


def cold(used: float, *files: StoredFile, active: bool = False, fill: dict[str, TargetFill] | None = None,
         ) -> list[Finding]:
    return look(cold_on_flash.POLICY, facts=Facts(pools=POOLS, fill=filled(used) if fill is None else fill,
                                                    stored=files),
                active={("cold-on-flash", "", "flash")} if active else ())


def test_cold_files_on_full_flash_are_reported_with_the_bytes_to_free() -> None:
    (found,) = cold(0.9, stored(1, 30), stored(2, 8), stored(3, 1))
    assert "90% full; 2 of 3 files examined there (2.0 GB) have not been used for at least 7 days" in found.sentence
    assert found.evidence.numbers()["bytes_to_free"] == pytest.approx(0.2 * 200 * GB)
    assert (found.directories, found.advice_only) == (("/proj/old",), False)


@pytest.mark.parametrize(("used", "active", "reported"), [
    (0.5, False, False), (0.79, False, False), (0.75, True, True), (0.69, True, False)])
def test_cold_files_are_reported_from_the_upper_to_the_lower_mark(used: float, active: bool, reported: bool) -> None:
    assert bool(cold(used, stored(1, 300), active=active)) == reported


def test_only_the_bytes_on_flash_count() -> None:
    layout = Layout((Component(0, 1 << 20, "flash"), Component(1 << 20, None, "hdd")))
    (found,) = cold(0.9, replace(stored(1, 30), layout=layout))
    assert found.evidence.numbers()["cold_bytes"] == 1 << 20


def test_files_that_left_flash_and_pools_with_an_unknown_target_do_not_count() -> None:
    assert cold(0.9, stored(1, 30, pools=("hdd",))) == []
    assert cold(0.95, stored(1, 30), fill={t: fill for t, fill in filled(0.95).items() if t != FLASH[0]}) == []


EVERYWHERE = Facts(pools=POOLS, fill=filled())


def test_without_flash_or_room_there_nothing_is_sent_to_it() -> None:
    noise = halves(small_io("fio.7", 48, seconds=30.0))
    for known in (Facts(pools={"hdd": TARGETS}), EVERYWHERE, Facts(pools=POOLS, fill=filled(flash=0.95))):
        (found,) = look(small_random_io.POLICY, noise, known)
        assert any("-p flash" in advice.command for advice in found.advice) == (known == EVERYWHERE)
    activity = DirectoryActivity("h.1", "/d", opens=5000, creates=100, outgrown=90)
    reread = halves(reads_whole("h.1", 50, 65536))
    for full in (False, True):
        known = Facts(pools=POOLS, fill=filled(flash=0.95 if full else 0.3), directories=(activity,))
        advised = [look(each.POLICY, reread, known)[0].advice for each in (hot_small_files, outgrown_component)]
        assert [bool(advice) for advice in advised] == [not full] * 2


def test_without_room_on_disks_nothing_is_sent_there() -> None:
    old = StoredFile(Fid(1, 1), "/d/f", 10**9, ("flash",), -86_400.0 * 30)
    for hdd, reported in ((0.3, True), (0.97, False)):
        known = Facts(pools=POOLS, fill=filled(flash=0.9, hdd=hdd), stored=(old,))
        (cold,) = look(cold_on_flash.POLICY, facts=known)
        (full,) = look(flash_pressure.POLICY, facts=known)
        assert (bool(cold.advice), bool(full.advice)) == (reported, reported)


def test_files_that_are_all_in_use_are_not_listed_as_cold() -> None:
    young = StoredFile(Fid(1, 1), "/d/f", 10**9, ("flash",), 0.0)
    (found,) = look(flash_pressure.POLICY, facts=Facts(pools=POOLS, fill=filled(flash=0.9), stored=(young,)))
    assert not any("lfs find" in advice.command for advice in found.advice)


def reader(reads_s: float, size: float = 64 * KIB, targets: Sequence[str] = TARGETS, opens_s: float | None = None,
           writes_s: float = 0.0) -> tuple[list[JobLoad], NamespaceLoad]:
    """A job that opens a file and reads it with one RPC, for half a minute."""
    each = 30 * reads_s / len(targets)
    loads = [JobLoad(t, "py.3", read_bytes=each * size, reads=each, writes=30 * writes_s / len(targets),
                     busy_usec=each * 9000) for t in targets]
    return loads, NamespaceLoad("py.3", opens=30 * (reads_s if opens_s is None else opens_s) + 90, creates=90)


def read_again(part: tuple[list[JobLoad], NamespaceLoad], opens: int = 12_000, creates: int = 0, active: bool = False,
          pools: dict[str, tuple[str, ...]] | None = None) -> list[Finding]:
    facts = Facts(pools=POOLS if pools is None else pools, fill=filled(), directory_seconds=600.0, directories=(
        DirectoryActivity("py.3", "/sw/site-packages", creates=creates, opens=opens),
        DirectoryActivity("py.3", "/home/u", opens=3)))
    return look(hot_small_files.POLICY, halves(part), facts, {("hot-small-files", "py.3", "")} if active else ())


def test_small_files_read_again_and_again_from_disk_are_reported() -> None:
    (finding,) = read_again(reader(20))
    assert (finding.aggressor, finding.directories, finding.targets) == ("py.3", ("/sw/site-packages",), TARGETS)
    assert "in /sw/site-packages again and again: 20 reads/s from disks, 100% of its bytes" in finding.sentence
    assert round(finding.evidence.numbers()["usec_per_rpc"]) == 9000
    assert not finding.advice_only


@pytest.mark.parametrize(("part", "changes"), [
    pytest.param(reader(20, targets=FLASH), {}, id="on flash"),
    pytest.param(reader(2, opens_s=200), {}, id="cached by the clients"),
    pytest.param(reader(20, size=1 << 20, opens_s=0.5), {}, id="large files"),
    pytest.param(reader(20, writes_s=30), {}, id="more writes than reads"),
    pytest.param(reader(20), {"creates": 8000}, id="a directory that is written"),
    pytest.param(reader(20), {"opens": 0}, id="no open records"),
])
def test_files_are_not_reported_if_they(part: tuple[list[JobLoad], NamespaceLoad], changes: dict[str, Any]) -> None:
    assert read_again(part, **changes) == []


def test_files_read_again_are_reported_until_they_are_read_seldom() -> None:
    assert read_again(reader(7)) == []
    assert read_again(reader(7), active=True)
    assert read_again(reader(4), active=True) == []


TOO_SMALL = Layout((Component(0, 128 * KIB, "flash"), Component(128 * KIB, None, "hdd")))
PLAIN = Layout((Component(pool="hdd"),), composite=False)


def grown(outgrown: int, creates: int, layout: Layout | None = TOO_SMALL, active: bool = False,
          place: str = "/proj/in") -> list[Finding]:
    facts = Facts(directories=(DirectoryActivity("m.2", place, creates=creates, outgrown=outgrown),),
                  directory_seconds=300.0, default_layouts={place: layout})
    return look(outgrown_component.POLICY, facts=facts, active={("outgrown-component", "m.2", place)} if active else ())


def test_files_that_outgrow_the_component_are_reported_with_its_size() -> None:
    (finding,) = grown(500, 1000)
    assert (finding.aggressor, finding.directories, finding.advice_only) == ("m.2", ("/proj/in",), False)
    assert "500 of 1000 files created recently in /proj/in outgrew their first component (50%; " in finding.sentence
    assert finding.evidence.numbers()["component_bytes"] == 128 * KIB


def test_outgrown_files_are_reported_until_they_are_few() -> None:
    assert grown(40, 1000) == [], "the tail is for a large file now and then"
    assert grown(40, 1000, active=True)
    assert grown(10, 1000, active=True) == []


@pytest.mark.parametrize("findings", [
    pytest.param(grown(19, 19), id="few files"),
    pytest.param(grown(500, 1000, layout=PLAIN), id="one component"),
    pytest.param(grown(500, 1000, layout=None), id="no default layout"),
    pytest.param(grown(500, 1000, place="[0x200000401:0x1:0x0]"), id="no path"),
])
def test_other_directories_are_not_reported(findings: list[Finding]) -> None:
    assert findings == []
