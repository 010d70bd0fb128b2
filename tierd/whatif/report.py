"""The answer of ``tierctl whatif``, as text, as JSON and as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape

from tierd.cli import client
from tierd.daemon.charts import Axes
from tierd.detect.account import Lost, total
from tierd.refusal import Reason
from tierd.sense.prometheus_past import POOLS, Found, Seen
from tierd.sense.readings import is_ost
from tierd.structs import json_text
from tierd.text import bytes_text, count_of, duration_text, first_names, percent, table
from tierd.whatif.account import Need, Neighbour, PastCase, given_back

MOST_CASES = 20
"""Cases in the text; JSON has all."""
PARTS = 4
"""Sizes of flash that are shown if none were asked for: parts of what is needed at most."""
DAY_SECONDS = 86_400
WHY: Mapping[str, str] = {
    Reason.REPORTED_ONLY: "flash for small files does not help, or act.on lacks such findings",
    Reason.LITTLE_TO_GAIN: "there was too little to gain",
    Reason.UNCERTAIN_GAIN: "the loss was not certain enough",
    Reason.UNCLEAR_IO: "it is not clear whether the other job's I/O is small",
    Reason.NOT_SMALL: "its files are not small, or only whole files on flash would help",
}
"""Why tierd would have done nothing, by reason code; others are shown as they are."""
WIDTH, HEIGHT, MARGIN = 640, 360, 70
"""Of the picture."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What happened in a past time, and what tierd would have done."""

    found: Found
    until: float
    """End of the last window."""
    step_seconds: float
    seen: Seen
    known_pools: Sequence[str]
    """Pools whose costs of service are known, and those that the settings name as flash."""
    all_cases: Sequence[PastCase]
    neighbours: Sequence[Neighbour]
    needed: Sequence[Need]
    sizes: Sequence[float]
    """Sizes of flash that were asked for."""
    stopped: BaseException | None
    """What ended it early."""

    @cached_property
    def cases(self) -> list[PastCase]:
        """Cases in which the stream certainly lost something, or tierd would have acted; the largest loss first."""
        return sorted((case for case in self.all_cases if case.lost.is_certain or case.given_back.bytes),
                      key=lambda case: -case.lost.bytes)

    @cached_property
    def lost(self) -> Lost:
        return total([case.lost for case in self.cases])

    @cached_property
    def curve(self) -> list[tuple[float, Lost]]:
        """Sizes of flash, and the bytes that each regains."""
        most = self.needed[-1].high_bytes
        return [(size, given_back(self.needed, size))
                for size in self.sizes or [most * part / PARTS for part in range(1, PARTS + 1)]]


def not_known(answer: Answer) -> Iterator[str]:
    """What the data does not show."""
    seen, facts = answer.seen, answer.seen.facts()
    yield (f"cases shorter than {duration_text(2 * answer.step_seconds)}: a window is "
           f"{duration_text(answer.step_seconds)} long")
    if seen.gap_seconds:
        yield f"{duration_text(seen.gap_seconds)} in which nothing was scraped"
    if lacking := sorted({target for members in facts.pools.values() for target in members} - seen.targets):
        yield f"{count_of(len(lacking), 'OST')} without counters ({first_names(lacking)}): scrape every OSS"
    if all(map(is_ost, seen.targets)):
        yield "jobs of small files with large RPCs: no MDT has counters of jobs. Scrape every MDS"
    if POOLS not in seen.families:
        yield "pools: no MDS shows any, so all OSTs that rotate count as one pool of equal disks"
    if unknown := sorted(set(facts.pools) - facts.flash - set(answer.known_pools)):
        yield f"anything about pools that no stream keeps busy: {', '.join(unknown) or 'the disks'}"
    if uncertain := len(answer.all_cases) - len(answer.cases):
        yield f"whether {count_of(uncertain, 'more stream')} lost anything"
    if answer.neighbours:
        yield ("sizes and lifetimes of files: a size is the mean of what a job writes for each new file, which is too "
               "large if it writes files again")
    if answer.stopped is not None:
        yield f"the time after {client.time_text(answer.until)}: reading was stopped"


def as_text(answer: Answer) -> list[str]:
    begin, end = map(client.time_text, (answer.found.begin, answer.until))
    lines = [f"{answer.found.fsname}, {begin} to {end} (intervals hold with a probability of 90%)",
             f"{count_of(len(answer.cases), 'case')} in which a stream lost throughput to another job"
             + (f": {answer.lost}" if answer.cases else "")]
    if answer.needed[1:]:
        lines += flash_lines(answer)
    lines += [f"in {count_of(count, 'case')} tierd would have done nothing: {WHY.get(reason, reason)}"
              for reason, count in Counter(case.refused for case in answer.cases if case.refused).most_common()]
    if answer.cases:
        lines += ["", *table(("BEGIN", "LASTED", "STREAM", "ALONGSIDE", "LOST", "REGAINED"), [
            (client.local_time(case.begin).strftime("%m-%d %H:%M"), duration_text(case.end - case.begin),
             case.victim, case.aggressor, bytes_text(case.lost.bytes), bytes_text(case.given_back.bytes))
            for case in answer.cases[:MOST_CASES]])]
    if len(answer.cases) > MOST_CASES:
        lines.append(f"and {len(answer.cases) - MOST_CASES} more: --json")
    return [*lines, "", "Not known:", *(f"- {each}" for each in not_known(answer))]


def flash_lines(answer: Answer) -> Iterator[str]:
    need, served = answer.needed[-1], [each for each in answer.neighbours if each.gain.bytes]
    files = sum(each.made.creates for each in served)
    a_day = DAY_SECONDS / max(answer.until - answer.found.begin, 1.0)  # counters know what was made in a gap
    size = sum(each.made.creates * each.mean_bytes for each in served)
    yield (f"tierd would have placed new files of {count_of(len(served), 'job')} on flash and regained "
           f"{need.gain}: {percent(need.gain.bytes / answer.lost.bytes)}")
    yield (f"{files:,.0f} files of {bytes_text(size / max(files, 1.0))} on average; {files * a_day:,.0f} files and "
           f"{bytes_text(size * a_day)} a day")
    yield (f"flash for that: {bytes_text(need.low_bytes)} if files are removed when their job ends, "
           f"{bytes_text(need.high_bytes)} if only jobs remove them")
    yield ""
    yield from table(("FLASH", "GIVES BACK"), [(bytes_text(each), str(gain)) for each, gain in answer.curve])
    yield ""


def as_json(answer: Answer) -> str:
    need = answer.needed[-1]
    return json_text({
        **asdict(answer.found), "until": answer.until, "complete": answer.stopped is None,
        "window_seconds": answer.step_seconds, "windows": answer.seen.windows, "lost": asdict(answer.lost),
        "given_back": asdict(need.gain), "flash": {"low_bytes": need.low_bytes, "high_bytes": need.high_bytes},
        "curve": [{"flash_bytes": size, **asdict(gain)} for size, gain in answer.curve],
        "jobs": [{"job": each.job, "acted_at": each.acted_at, "component_bytes": each.component_bytes,
                  "files": each.made.creates, "mean_file_bytes": each.mean_bytes, "given_back": asdict(each.gain)}
                 for each in answer.neighbours],
        "cases": [asdict(case) for case in answer.cases], "not_known": list(not_known(answer)),
    }, indent=1)


def as_svg(answer: Answer) -> str:
    """The bytes that flash regains, against its size, with the interval."""
    most = max(answer.needed[-1].high_bytes, *answer.sizes, 1.0)
    across, up = Axes.around(0.0, most, most), Axes.around(0.0, most, answer.needed[-1].gain.high_bytes)

    def at(size: float, gain: float) -> tuple[float, float]:
        return (round(MARGIN + (WIDTH - 2 * MARGIN) * size / across.top, 1),
                round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * max(gain, 0.0) / up.top, 1))

    def line(points: Iterable[tuple[float, float]], style: str) -> str:
        return f'<polyline points="{" ".join(f"{x},{y}" for x, y in (at(*each) for each in points))}" {style}/>'

    def words(place: tuple[float, float], style: str, text: str) -> str:
        return f'<text x="{place[0]}" y="{place[1]}" {style}>{escape(text)}</text>'

    curve = [(size, given_back(answer.needed, size)) for size in (across.top * part / 100 for part in range(101))]
    band = [*((size, gain.low_bytes) for size, gain in curve), *((size, gain.high_bytes) for size, gain in curve[::-1])]
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12" fill="none">',
        '<rect width="100%" height="100%" fill="white"/>',
        *(line(((0.0, gain), (across.top, gain)), 'stroke="#ddd"') for gain in up.steps),
        line(band, 'fill="#bcd8ef"'), line(((size, gain.bytes) for size, gain in curve), 'stroke="#1f5f99"'),
        *(line(((size, 0.0), (size, up.top)), 'stroke="#777" stroke-dasharray="4"') for size in answer.sizes),
        '<g fill="black" font-family="sans-serif" text-anchor="middle">',
        words((WIDTH / 2, MARGIN / 2), "", f"{answer.found.fsname}: bytes regained, by size of flash (90% interval)"),
        *(words(at(size, 0.0), 'dy="18"', bytes_text(size)) for size in across.steps), '<g text-anchor="end">',
        *(words(at(0.0, gain), 'dx="-8" dy="4"', bytes_text(gain)) for gain in up.steps[1:]), "</g></g></svg>\n"))
