"""A reader of an MDT that shows a record late, or loses one, and of a leader that takes nothing: without NATS."""

from __future__ import annotations

from pathlib import Path

from tests.tierd.cluster.reader_world import FileChangelog, life, new_table
from tests.tierd.sense.clocks import SettableClock
from tierd.cluster.reader import MAX_WINDOWS, MdtReader, Window
from tierd.config.settings import ReaderSettings
from tierd.sense.changelogs.tally_source import Position

MDT = "MDT0000"


class Site:
    def __init__(self, folder: Path) -> None:
        self.log = FileChangelog(folder)
        self.clock = SettableClock()
        self.sent: list[Window] = []
        self.reader = MdtReader(MDT, "r1", self.log.read, print, "", new_table, ReaderSettings(window_seconds=0.4),
                                self.clock, self.clock.now)

    def step(self, seconds: float = 0.5) -> None:
        self.clock.at += seconds
        self.reader.step(1, Position(0, 0), self.sent.append)


def test_a_tally_ends_before_a_late_record_and_is_not_at_the_end(tmp_path: Path) -> None:
    site = Site(tmp_path)
    records = [record for number in range(4) for record in life(number)]
    late = records.pop(7)
    site.log.append(MDT, records)
    site.step(0.0)
    site.step()
    assert [(each.tally.after, each.tally.last) for each in site.sent] == [(0, 7)]
    site.step()
    assert not any(each.tally.at_end or each.tally.gap for each in site.sent)
    (tmp_path / MDT).unlink()
    site.log.append(MDT, [*records[:7], late, *records[7:]])
    for _ in range(3):
        site.step()
    assert [(each.tally.after, each.tally.last, each.tally.gap) for each in site.sent if each.tally.records] == [
        (0, 7, ""), (7, 12, "")]
    assert site.sent[-1].tally.at_end


def test_a_lost_record_is_a_gap_after_two_seconds(tmp_path: Path) -> None:
    site = Site(tmp_path)
    records = [record for number in range(4) for record in life(number)]
    del records[7]
    site.log.append(MDT, records)
    for _ in range(4):
        site.step()
    assert not any(each.tally.gap for each in site.sent)
    site.step()
    assert [each.tally.gap for each in site.sent if each.tally.gap] == ["records 8 to 8 are missing"]
    assert site.reader.read_position == 12


def test_a_reader_that_keeps_as_many_tallies_as_it_may_reads_no_more(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for number in range(2 * MAX_WINDOWS):
        site.log.append(MDT, life(number))
        site.step()
    assert site.reader.waiting == len(site.sent) == MAX_WINDOWS
    assert site.reader.records == 3 * (MAX_WINDOWS + 1), "the first window begins with the first step"
