"""What must not matter in a recording does not: names, sizes, under how many job ids, what of the records is there.

The recorded tapes are replayed with one change in the bytes of their files, so that the parsers are tested too.
Counters are changed as they stand, which only ever grow; so what is made of them grows as well.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lustre.changelog.record import Record, RecordType, decode
from lustre.fid import Fid
from lustre.formats import job_stats
from lustre.formats.job_stats import Job
from lustre.layout.model import Layout
from lustre.unpack import unpack
from simulator.servers.changelog_bytes import encode
from tests.tierd.tapes import TAPES
from tierd.config.settings import Settings
from tierd.decide.plans import FlashSettings
from tierd.model import Finding
from tierd.replay.run import Report, replay
from tierd.sense import tape as tapes

JUDGED_BY = re.compile(r"^changelog|/job_stats$|/lod/[^/]*/pools/|/(degraded|recovery_status)$|/obdfilter/[^/]*/kbytes")
ENOUGH = 20
"""Snapshots of the essential part: 45 s alone, 50 s of noise."""
UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))


def same(entry: Job) -> Iterable[Job]:
    return (entry,)


@dataclass(frozen=True)
class Variation:
    """What becomes of entries of ``job_stats``, of records, of names in the description, and which snapshots stay."""

    entries: Callable[[Job], Iterable[Job]] = same
    records: Callable[[Record], Iterable[Record]] = lambda record: (record,)
    described: Callable[[str], str] = str
    """Of the description of the tape as JSON, and of names and contents of the other files."""
    keeps: Callable[[int], bool] = lambda n: n < ENOUGH
    adds: Callable[[str], Iterable[Job]] = field(default=lambda _: ())
    """Further entries for a file of job statistics, by its path below the tape."""


def write(source: Path, folder: Path, variation: Variation) -> Path:
    """The unpacked tape as the variation has it, below an empty folder."""
    meta: dict[str, Any] = json.loads(variation.described((source / "tape.json").read_text()))
    kept = [n for n in range(len(meta["snapshot_times"])) if variation.keeps(n)]
    for file in source.glob("changelog-*.bin"):
        records, _ = decode(file.read_bytes())
        varied = [encode(new) for record in records for new in variation.records(record)]
        (folder / file.name).write_bytes(b"".join(varied))
    for new, old in enumerate(kept):
        for file in (source / f"{old:03d}").rglob("*"):
            if file.is_file():
                name = str(file.relative_to(source))
                to = folder / f"{new:03d}" / variation.described(name.partition("/")[2])
                to.parent.mkdir(parents=True, exist_ok=True)
                if file.name == "job_stats":
                    entries = [*job_stats.parse(file.read_bytes()).jobs, *variation.adds(name)]
                    to.write_bytes(printed(made for entry in entries for made in variation.entries(entry)))
                elif "/pools/" in name:
                    to.write_text(variation.described(file.read_text()))
                else:
                    to.hardlink_to(file)
    (folder / "tape.json").write_text(json.dumps({**meta, "snapshot_times": [meta["snapshot_times"][n] for n in kept]}))
    return folder


@cache
def unpacked(name: str, below: Path) -> Path:
    """A tape of the repository, unpacked once below a folder: what a replay judges by."""
    folder = below / name
    unpack(TAPES / name / "tape.tar.xz", folder, lambda member: JUDGED_BY.search(member) is not None)
    (folder / "tape.json").write_bytes((TAPES / name / "tape.json").read_bytes())
    return folder


def printed(entries: Iterable[Job]) -> bytes:
    """Job statistics as 2.17 prints them."""
    return b"job_stats:\n" + b"".join(b"".join(_lines(entry)) for entry in entries)


def _lines(entry: Job) -> Iterator[bytes]:
    odd = any((not chr(byte).isalnum() and byte not in b"._-@:/%,") or byte > 126 for byte in entry.job_id)
    text = "".join(chr(b) if 32 < b < 127 and b not in b'"\\' else f"\\x{b:02X}" for b in entry.job_id)
    yield f'- job_id:          "{text}"\n'.encode() if odd else b"- job_id:          " + entry.job_id + b"\n"
    yield b"  snapshot_time:   " + entry.snapshot_time + b" secs.nsecs\n"
    yield b"  start_time:      " + entry.start_time + b" secs.nsecs\n"
    sizes = dict(entry.histograms)
    for name, samples, unit, total in zip(entry.names, entry.samples, entry.units, entry.sums, strict=True):
        buckets = ", ".join(f"{label(upper)}: {count}" for upper, count in sizes.get(name, ()))
        hist = f", hist: {{ {buckets} }}".encode() if buckets else b""
        yield b"  %s: { samples: %s, unit: %s, min: 0, max: 0, sum: %s, sumsq: 0%s }\n" % (
            name, samples, unit, total or b"0", hist)


def label(upper: int) -> str:
    """Of a bucket of sizes.

    >>> label(4096), label(1 << 20), label(512)
    ('4K', '1M', '512')
    """
    return next((f"{upper // unit}{letter}" for unit, letter in UNITS if upper >= unit), str(upper))


def part(entry: Job, number: int, of: int) -> Job:
    """The number-th of so many shares of what an entry counts; together they are the entry."""
    def share(count: int) -> int:
        return (count + number) // of

    return counted(entry, share, share)


def counted(entry: Job, operations: Callable[[int], int], amounts: Callable[[int], int],
            upper: Callable[[int], int] = int) -> Job:
    """The entry with other counts, other sums and other sizes."""
    return replace(
        entry, samples=tuple(b"%d" % operations(int(n)) for n in entry.samples),
        sums=tuple(b"%d" % amounts(int(n or 0)) for n in entry.sums),
        histograms=tuple((name, tuple((upper(size), operations(n)) for size, n in sizes))
                         for name, sizes in entry.histograms))


STREAM, SMALL, RANDOM = "ior_stream.1002", "mdt_small.1001", "fio_rand.1001"
CREATES, TOO_SMALL, RANDOM_4K = "noisy-create-1m", "noisy-flash-too-small", "noisy-random-4k"
QUIET, COVERED, SLOW_DISK = "control-quiet", "control-flash-covers", "control-slow-disk"
NOISY = {CREATES: SMALL, TOO_SMALL: SMALL, RANDOM_4K: RANDOM}
INGEST = Fid(0x200000402, 0x4)
ALONE = 9
"""Windows before the noise."""

Replayed = Callable[..., Report]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the unpacked tapes."""
    return tmp_path_factory.mktemp("tapes")


@pytest.fixture(scope="module")
def replayed(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    def go(name: str, variation: Variation, settings: Settings | None = None) -> Report:
        folder = write(unpacked(name, base), tmp_path_factory.mktemp("varied"), variation)
        with tapes.opened(folder) as tape:
            return replay(tape, settings or Settings())

    return go


@pytest.fixture(scope="module")
def as_it_was(replayed: Replayed) -> Callable[[str], Report]:
    def go(name: str) -> Report:
        report = replayed(name, Variation())
        assert [finding.aggressor for finding in noise(report)] == ([NOISY[name]] if name in NOISY else [])
        return report

    return cache(go)


def noise(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind == "noisy-neighbour"]


def reported(report: Report) -> list[tuple[Any, ...]]:
    """Who, where and when, for comparison."""
    return [(f.aggressor, f.victim, f.targets, f.directories, f.time) for f in noise(report)]


def layouts(report: Report) -> list[tuple[str, Layout]]:
    return [(action.directory, action.layout) for action in report.plan]


def only(job: str, then: Callable[[Job], Iterable[Job]]) -> Callable[[Job], Iterable[Job]]:
    return lambda entry: then(entry) if entry.job_id == job.encode() else (entry,)


def renamed(names: Mapping[str, str]) -> Variation:
    """Other job ids, in counters and records."""
    new = {old.encode(): to.encode() for old, to in names.items()}
    return Variation(lambda entry: [replace(entry, job_id=new.get(entry.job_id, entry.job_id))],
                     lambda record: [record._replace(job_id=new.get(record.job_id, record.job_id))])


@pytest.mark.parametrize(("stream", "other"), [
    ("4242_7", "4243_11"), ('"my x:y.0', "größe {hist: 1}.1"), ("null", "-" * 31),
])
def test_names_of_jobs_do_not_matter(replayed: Replayed, as_it_was: Callable[[str], Report], stream: str,
                                     other: str) -> None:
    name = CREATES
    new = {STREAM: stream, SMALL: other}
    report = replayed(name, renamed(new))
    assert reported(report) == [(new[a], new[v], *rest) for a, v, *rest in reported(as_it_was(name))]
    assert layouts(report) == layouts(as_it_was(name))


@pytest.mark.parametrize("name", [*NOISY, COVERED])
def test_names_of_file_systems_and_directories_do_not_matter(replayed: Replayed, as_it_was: Callable[[str], Report],
                                                             name: str) -> None:
    def other(text: str) -> str:
        return text.replace("lustre-", "scratch-1-").replace("/proj/", "/größer als/")

    report = replayed(name, Variation(described=other))
    assert reported(report) == [
        (a, v, tuple(map(other, targets)), tuple(map(other, places)), time)
        for a, v, targets, places, time in reported(as_it_was(name))]
    assert layouts(report) == [(other(place), layout) for place, layout in layouts(as_it_was(name))]


@pytest.mark.parametrize("kib", [16, 256, 4096])
def test_the_component_grows_with_the_files(replayed: Replayed, as_it_was: Callable[[str], Report], kib: int) -> None:
    def sized(entry: Job) -> list[Job]:
        return [counted(entry, int, lambda total: total * kib // 1024, lambda upper: max(4096, upper * kib // 1024))]

    report = replayed(CREATES, Variation(only(SMALL, sized)))
    assert reported(report) == reported(as_it_was(CREATES))
    (default,) = report.plan
    assert kib << 10 <= (default.layout.components[0].extent_end or 0) <= max(8 * kib << 10, 64 << 10)


@pytest.mark.parametrize("name", [CREATES, RANDOM_4K, COVERED, SLOW_DISK])
def test_a_stream_that_reads_is_judged_like_one_that_writes(replayed: Replayed, as_it_was: Callable[[str], Report],
                                                            name: str) -> None:
    assert reported(replayed(name, Variation(only(STREAM, read_instead)))) == reported(as_it_was(name))


def read_instead(entry: Job) -> list[Job]:
    """The same, with reads and writes exchanged."""
    swap = {b"read": b"write", b"write": b"read", b"read_bytes": b"write_bytes", b"write_bytes": b"read_bytes"}
    return [replace(entry, names=tuple(swap.get(name, name) for name in entry.names),
                    histograms=tuple((swap.get(name, name), sizes) for name, sizes in entry.histograms))]


def test_of_a_neighbour_that_reads_its_files_existing_ones_are_moved_too(replayed: Replayed) -> None:
    policy = FlashSettings(settle_seconds=1.0)  # the neighbour is found before a file has been closed for ten seconds
    report = replayed(CREATES, Variation(only(SMALL, read_instead)), Settings(small_files_to_flash=policy))
    assert [finding.aggressor for finding in noise(report)] == [SMALL]
    assert [action.kind for action in report.plan][:2] == ["set-default-layout", "migrate"]


@pytest.mark.parametrize("tasks", [2, 8])
def test_a_neighbour_under_many_job_ids_is_found(replayed: Replayed, as_it_was: Callable[[str], Report],
                                                 tasks: int) -> None:
    def split(entry: Job) -> list[Job]:
        return [replace(part(entry, number, tasks), job_id=b"%d" % (7000 + number)) for number in range(tasks)]

    numbers: dict[Fid, int] = {}

    def shared_out(record: Record) -> list[Record]:
        task = 7000 + numbers.setdefault(record.target, len(numbers)) % tasks
        return [record._replace(job_id=b"%d" % task) if record.job_id == SMALL.encode() else record]

    report = replayed(CREATES, Variation(only(SMALL, split), shared_out))
    assert len({task for finding in noise(report) for task in finding.tasks or (finding.aggressor,)}) >= 0.8 * tasks
    assert min(finding.time for finding in noise(report)) <= noise(as_it_was(CREATES))[0].time + 15
    assert {finding.directories for finding in noise(report)} == {("/proj/ingest",)}
    assert [action.kind for action in report.plan] == ["set-default-layout"]


def test_two_streams_that_suffer_are_both_found(replayed: Replayed) -> None:
    def two(entry: Job) -> list[Job]:
        return [part(entry, 0, 2), replace(part(entry, 1, 2), job_id=b"other_stream.1003")]

    found = noise(replayed(RANDOM_4K, Variation(only(STREAM, two))))
    assert {(f.aggressor, f.victim) for f in found} == {(RANDOM, STREAM), (RANDOM, "other_stream.1003")}


def without(*types: RecordType) -> Callable[[Record], list[Record]]:
    return lambda record: [] if record.type in types else [record]


def bare(record: Record) -> list[Record]:
    return [record._replace(nid="", uid=None, gid=None, open_mode=None, xattr_name=b"")]


def named_once(record: Record) -> list[Record]:
    return [record if record.type == RecordType.CREATE else record._replace(job_id=b"")]


def every_other() -> Callable[[Record], list[Record]]:
    turn = count()
    return lambda record: [record] if next(turn) % 2 else []


@pytest.mark.parametrize("records", [
    pytest.param(bare, id="no client, user, mode"),
    pytest.param(without(RecordType.CLOSE), id="no CLOSE"),
    pytest.param(without(RecordType.CLOSE, RecordType.OPEN), id="no CLOSE, no OPEN"),
    pytest.param(named_once, id="jobs with CREAT only"),
    pytest.param(every_other(), id="half of them"),
])
def test_records_that_are_left_out_change_no_finding(replayed: Replayed, as_it_was: Callable[[str], Report],
                                                     records: Callable[[Record], list[Record]]) -> None:
    report = replayed(TOO_SMALL, Variation(records=records))
    assert reported(report) == reported(as_it_was(TOO_SMALL))
    assert layouts(report) == layouts(as_it_was(TOO_SMALL))


@pytest.mark.parametrize(("variation", "places", "why"), [
    pytest.param(Variation(records=lambda _: []), (), "no changelog shows where it works", id="no records"),
    pytest.param(Variation(described=lambda text: text.replace("stripe_count:  1", "no stripe info")),
                 ("/proj/ingest",), "its default layout could not be read", id="no layout"),
])
def test_a_neighbour_is_found_and_left_alone(replayed: Replayed, variation: Variation, places: tuple[str, ...],
                                             why: str) -> None:
    report = replayed(CREATES, variation)
    assert [(f.aggressor, f.directories) for f in noise(report)] == [(SMALL, places)]
    assert report.plan == ()
    assert why in report.refusals[0]


def test_a_neighbour_that_the_mdt_does_not_list_is_found_by_its_records(replayed: Replayed) -> None:
    report = replayed(CREATES, Variation(only(SMALL, lambda entry: [] if b"open" in entry.names else [entry])))
    assert [(f.aggressor, f.directories) for f in noise(report)] == [(SMALL, ("/proj/ingest",))]


@pytest.mark.parametrize("places", [2, 40])
def test_directories_that_a_neighbour_makes_have_the_default_of_the_one_above(
        replayed: Replayed, as_it_was: Callable[[str], Report], places: int) -> None:
    numbers: dict[Fid, int] = {}

    def spread(record: Record) -> list[Record]:
        if record.parent != INGEST:
            return [record]
        begins = len(numbers) < places and record.target not in numbers
        number = numbers.setdefault(record.target, len(numbers)) % places
        place = Fid(0x200000402, 0x9000 + number)
        made = record._replace(type=RecordType.MKDIR, target=place, name=b"d%02d" % number)
        return [*[made][:begins], record._replace(parent=place)]

    report = replayed(CREATES, Variation(records=spread))
    (finding,) = noise(report)
    assert sorted(finding.directories) == [f"/proj/ingest/d{n:02d}" for n in range(places)]
    ((_, layout),) = layouts(as_it_was(CREATES))
    assert set(layouts(report)) == {(place, layout) for place in finding.directories}


@pytest.mark.parametrize("name", [*NOISY, SLOW_DISK])
@pytest.mark.parametrize("keeps", [
    pytest.param(lambda n: n % 10 not in {3, 7, 8} and n < 24, id="three of ten lost"),
    pytest.param(lambda n: ALONE - 4 <= n < ENOUGH, id="20 s alone"),
])
def test_snapshots_that_are_missing(replayed: Replayed, name: str, keeps: Callable[[int], bool]) -> None:
    found = noise(replayed(name, Variation(keeps=keeps)))
    assert [finding.aggressor for finding in found] == ([NOISY[name]] if name in NOISY else [])


def test_rates_matter_as_ratios(replayed: Replayed, as_it_was: Callable[[str], Report]) -> None:
    def more(entry: Job) -> list[Job]:
        return [replace(counted(entry, lambda n: n * 20, lambda n: n * 20), histograms=())]

    assert reported(replayed(CREATES, Variation(more))) == reported(as_it_was(CREATES))


@pytest.mark.parametrize("donor", list(NOISY))
def test_a_neighbour_that_slows_nobody_is_innocent(replayed: Replayed, base: Path, donor: str) -> None:
    other = unpacked(donor, base)

    def guest(path: str) -> Iterator[Job]:
        file: Path = other / path
        for entry in job_stats.parse(file.read_bytes()).jobs:
            if entry.job_id == NOISY[donor].encode():
                yield replace(entry, job_id=b"guest.1009")

    assert replayed(QUIET, Variation(adds=guest)).findings == ()


@pytest.mark.parametrize("name", [QUIET, COVERED, SLOW_DISK])
def test_a_storm_of_metadata_is_no_noise_on_the_disks(replayed: Replayed, name: str) -> None:
    def storm(path: str) -> list[Job]:
        done = b"%d" % (500 * 5 * max(0, int(path.partition("/")[0]) - ALONE))
        names = (b"open", b"close", b"mknod", b"unlink") if "/mdt/" in path else (b"setattr", b"destroy", b"punch")
        return [Job(b"mdtest.1009", b"1", b"1", names, (done,) * len(names), (b"usecs",) * len(names),
                    (done,) * len(names), (), 0)]

    assert replayed(name, Variation(adds=storm)).findings == ()
