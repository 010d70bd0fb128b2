"""The bill of a simulated site: what the neighbour cost is what the stream gets without it."""

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tierd.act.applications import ApplicationStore
from tierd.bill.command import table
from tierd.bill.entries import (
    DAY_SECONDS,
    KEEP_DAYS,
    BillAnswer,
    BillEntry,
    by_case,
    by_side,
    remove_old,
    store,
    stored,
)
from tierd.bill.running import MAX_ENDED, MAX_SERIES, Bill
from tierd.cli.client import time_text
from tierd.cli.tierctl import main
from tierd.integrations.protocol import SchedulerJob


def moved_bytes(jobs: Sequence[Job], begin: float, end: float) -> float:
    """What the stream moves in this time on the test bed."""
    cluster = FluidCluster(recorded_test_bed(), jobs)
    cluster.live(until=end + 1)
    return sum(cluster.throughput(STREAM.job_id, begin, end)) * 1e6


def bill(site: Site, **more: object) -> BillAnswer:
    now = site.cluster.epoch
    return BillAnswer.from_json(site.ask("bill", since=now - 3600, until=now, **more))


def test_the_bill_holds_what_the_stream_lost(site: Site) -> None:
    site.restart(act={"mode": "observe"})
    site.run(until=30)
    assert bill(site) == BillAnswer(since=bill(site).since, until=bill(site).until)
    site.run(until=190)
    (entry,) = bill(site).entries
    assert (entry.aggressor, entry.victim, entry.finding) == (NOISE.job_id, STREAM.job_id, 1)
    begin, end = (time - (site.cluster.epoch - site.cluster.now) for time in (entry.begun_at, entry.ended_at))
    truth = moved_bytes((STREAM,), begin, end) - moved_bytes((STREAM, NOISE), begin, end)
    assert end - begin > 100
    assert entry.low_bytes <= truth <= entry.high_bytes


def test_the_command_shows_it_for_jobs_users_and_one_job(site: Site) -> None:
    site.run(until=190)
    head, titles, first, second = site.shown("bill").splitlines()
    assert head.endswith("what jobs with small files cost streams (90% interval)")
    assert titles.split() == ["JOB", "cost", "others", "lost", "to", "others"]
    assert first.split()[:2] == [NOISE.job_id, second.split()[1]]
    assert second.startswith(STREAM.job_id)
    assert "1002" in site.shown("bill", "--by", "user")
    assert "(no project known)" in site.shown("bill", "--by", "project")
    assert site.shown("bill", "--line", "--job", NOISE.job_id).startswith("cost other jobs ")
    assert site.shown("bill", "--line", "--job", "another") == ""
    with pytest.raises(SystemExit, match="2"):
        main(["bill", "--user", "anna", "--socket", site.socket])  # not the bill of all users
    (row,) = csv.DictReader(site.shown("bill", "--csv").splitlines())
    (entry,) = json.loads(site.shown("bill", "--json"))["entries"]
    assert float(row["lost_bytes"]) == entry["lost_bytes"] > 0
    assert f'tierd_interference_lost_bytes_total{{aggressor="{NOISE.job_id}",' in site.fetched("/metrics")[1]
    site.restart()
    assert bill(site).entries[0].lost_bytes == pytest.approx(entry["lost_bytes"])


def test_midnight_changes_no_sum(site: Site) -> None:
    bed = recorded_test_bed()
    begun = (bed.epoch_seconds // DAY_SECONDS + 1) * DAY_SECONDS - 50
    site.begin_again(FluidCluster(replace(bed, epoch_seconds=begun), (STREAM, NOISE)))
    site.restart(act={"mode": "observe"})
    site.run(until=190)
    entries = bill(site).entries
    assert len(entries) == 2
    lost = sum(each.lost_bytes for each in entries)
    assert lost == pytest.approx(3.41e9, rel=0.02)
    counted = [float(*re.findall(r"^tierd_interference_lost_bytes_total.* (\S+)$", site.fetched("/metrics")[1],
                                 re.MULTILINE)) for _ in range(2)]
    assert counted == [0, pytest.approx(lost)]


def entry(finding: int, begun_at: float, **more: object) -> BillEntry:
    numbers = {"ended_at": begun_at + 60, "aggressor": "a.1", "victim": "v.2", "lost_bytes": 2e9, "low_bytes": 1e9,
               "high_bytes": 3e9, "lost_seconds": 10.0, "aggressor_user": "alice", "victim_user": "bob"}
    return BillEntry(finding=finding, begun_at=begun_at, **{**numbers, **more})  # type: ignore[arg-type]


def test_further_pairs_are_summed_in_one_series(site: Site) -> None:
    made = Bill(site.service.daemon, lambda _: {})
    for number in range(MAX_SERIES + 3):
        made._add(made._billed, (f"a.{number}", "v.1"), 1e6)
    assert len(made._billed) == MAX_SERIES + 1, "a daemon runs for months"
    for of_rest in (0.0, 3e6, 3e6):  # a series begins at 0, or its first bytes are no increase
        (family,) = made.metrics()
        sizes = {(sample.labels["victim"], sample.labels["aggressor"]): sample.value for sample in family.samples}
        assert len(sizes) == MAX_SERIES + 1
        assert sizes["", ""] == of_rest
    made.step()
    made._add(made._billed, ("new.1", "v.1"), 1e6)
    assert made._billed["new.1", "v.1"] == 1e6, "pairs of past cases make room"
    assert made._billed["", ""] == 3e6
    assert len(made._billed) == len(made._shown) == MAX_ENDED + 2


def test_entries_go_after_a_year(site: Site) -> None:
    now = 2000 * 86400.0
    old, new = entry(1, now - (KEEP_DAYS + 1) * 86400), entry(2, now - KEEP_DAYS * 86400)
    store(site.service.journal, [old, new])
    assert list(stored(site.service.journal, 0.0, now)) == [old, new]
    remove_old(site.service.journal, now)
    assert list(stored(site.service.journal, 0.0, now)) == [new]


def test_a_clock_that_jumps_years_ahead_and_back_takes_nothing(site: Site) -> None:
    made, now = Bill(site.service.daemon, lambda _: {}), 20000 * 86400.0
    store(site.service.journal, [entry(1, now)])
    ahead = now + 2 * KEEP_DAYS * 86400
    for moment in (now, ahead, ahead + 60, now + 120):
        made._store(moment)
    assert list(stored(site.service.journal, 0.0, now)) == [entry(1, now)]
    for moment in (ahead, ahead + 86400):
        made._store(moment)
    assert list(stored(site.service.journal, 0.0, now)) == []


def test_an_entry_that_cannot_be_read_is_left_out(site: Site) -> None:
    site.service.journal.set_state({"bill 000001 1 86400.000": '{"finding": "x"}'})
    assert list(stored(site.service.journal, 0.0, 2 * 86400.0)) == []


def test_a_job_is_known_by_the_number_of_its_scheduler(site: Site) -> None:
    job = SchedulerJob(4711, "train", "alice", None, "chem", "batch", "/")
    ApplicationStore(site.service.journal.db).remember({"a.1": job}, str, 0.0)
    now = site.cluster.epoch
    store(site.service.journal, [entry(7, now - 120)])
    line = site.shown("bill", "--line", "--job", "4711")
    assert line.strip() == "cost other jobs 2.0 GB (1.0 GB to 3.0 GB), 10 s"
    assert site.shown("bill", "--line", "--job", "4712") == ""
    assert site.shown("bill", "--line", "--job", "4711", "--user", "alice") == line
    assert site.shown("bill", "--line", "--job", "4711", "--user", "bob") == "", "in another cluster"


def test_a_user_who_costs_and_loses_is_one_line() -> None:
    sides = by_side([entry(1, 0.0), entry(2, 0.0, aggressor_user="bob", victim_user="alice")], "user")
    assert {name: (len(cost), len(lost)) for name, (cost, lost) in sides.items()} == {"alice": (1, 1), "bob": (1, 1)}


def test_the_heading_names_the_whole_time_of_its_entries() -> None:
    """An entry of a day counts as a whole, also if the last hour was asked for."""
    day = 20000 * 86400.0
    answer = BillAnswer(since=day + 36000, until=day + 39600, entries=(entry(1, day, ended_at=day + 39600),))
    assert table(answer, "job")[0].startswith(f"from {time_text(day)} to ")


def test_the_days_of_a_case_share_one_error() -> None:
    (whole,) = by_case([entry(1, 0.0), entry(1, 86400.0)])
    assert (whole.bytes, whole.low_bytes, whole.high_bytes) == (4e9, 2e9, 6e9)
