"""``make demo``: a simulated cluster, the exporter over the files it writes, and tierd with its page and socket.

``make stack`` uses the same site (:func:`running_site`).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.realtime import RealTimeDriver, WallClock
from simulator.scenarios.scenario import Scenario, library
from simulator.settings import recorded_test_bed
from stack.services import Options, free_ports, program, run_until_stopped
from tierd.act.movers.inspection import PortMover
from tierd.acts import ActKind, Outcome
from tierd.clock import Clock, SystemClock
from tierd.config.load import load
from tierd.config.settings import Settings
from tierd.daemon.answers import ExplainAnswer, StatusAnswer
from tierd.daemon.client import ControlError, ask
from tierd.daemon.node import Node
from tierd.daemon.service import Service
from tierd.daemon.states import verdict_text
from tierd.logs import heard
from tierd.sense.exporters import scrape_fixed_list
from tierd.text import bytes_text, count_of, percent, printable, rate_text

DESCRIPTION = (
    "Run a simulated cluster, the exporter, and tierd with its page and control socket. A noisy neighbour starts after "
    "25 seconds. All servers listen on loopback. All files are in a temporary folder, which is deleted at the end.")
CYCLE_SECONDS = 2.0
PAST_SECONDS = 25
"""Time for which the streams have run when the site starts, so that the chart begins with a curve."""
DISK_IOPS = 60
"""I/Os per second of each disk. With 40, as on the recorded test bed, the stream alone nearly saturates the disks."""


def quick(settings: Settings) -> Settings:
    """Settings for a demonstration of two minutes: cycles of two seconds, and a verdict after half a minute."""
    return replace(
        settings,
        act=replace(settings.act, dry_run=False, pause_file=""),
        sense=replace(settings.sense, cycle_seconds=CYCLE_SECONDS),
        noisy_neighbour=replace(settings.noisy_neighbour, recent_seconds=12.0),
        small_files_to_flash=replace(settings.small_files_to_flash, settle_seconds=4.0),
        limits=replace(settings.limits, files_per_second=4.0, bytes_per_second=4e6),
        verify=replace(settings.verify, settle_seconds=4.0, judge_seconds=16.0),
    )


def user_name(uid: int) -> str:
    """Account name of a simulated user. The same number may be somebody else on this machine."""
    return {1001: "anna", 1002: "ben"}.get(uid, "")


def with_neighbour(scenario: Scenario, **changes: Any) -> Scenario:
    """The scenario of the demonstration with other values of the noisy neighbour."""
    stream, noise = scenario.jobs
    return replace(scenario, jobs=(stream, replace(noise, **changes)))


@dataclass(frozen=True, slots=True)
class Site:
    """A running cluster with exporter and tierd."""

    cluster: Cluster
    exporter_url: str
    """URL of the metrics."""
    tierd_url: str
    socket: str
    """Path of tierd's control socket."""
    begun_at: float
    """Epoch seconds of the time zero: the streams were PAST_SECONDS old."""
    cycle: Callable[[], None]
    """Runs one cycle of tierd. Raises the error that ended the simulator."""


@contextmanager
def running_site(
    folder: Path, scenario: Scenario, exporter_port: int, tierd_port: int, clock: SystemClock,
) -> Iterator[Site]:
    """Run the cluster, the exporter and tierd. All files are below ``folder``.

    The start of a job that does not run at first counts from the start of the site.
    """
    bed = recorded_test_bed(hdd_ios_per_second=DISK_IOPS)
    jobs = [replace(job, start_seconds=job.start_seconds + PAST_SECONDS) if job.start_seconds else job
            for job in scenario.jobs]
    cluster = Cluster(replace(bed, epoch_seconds=int(clock.now()) - PAST_SECONDS), jobs)
    cluster.advance(PAST_SECONDS)
    root = folder / "node"
    with RealTimeDriver(cluster, root, WallClock()) as driver, running_exporter(root, exporter_port, clock) as url:
        filesystem = SimulatedFilesystem(cluster)
        chosen = quick(load(None))
        control = f"{folder}/tierd.sock"
        act = replace(chosen.act, journal=f"{folder}/journal.sqlite", socket=control)
        node = Node(filesystem=filesystem, mover=PortMover(filesystem), read=scrape_fixed_list([url], clock, 5.0),
                    mdts=[mdt.short_name for mdt in cluster.mdts], clock=clock, nudge=clock.nudge,
                    executor=ThreadPoolExecutor(8, "tierd-request"), user_name=user_name)
        service = Service(replace(chosen, act=act, web=replace(chosen.web, port=tierd_port)), node)
        service.start()

        def cycle() -> None:
            service.cycle()
            if driver.error is not None:
                raise driver.error

        try:
            yield Site(cluster, url, f"http://127.0.0.1:{tierd_port}/", control,
                       clock.now() - cluster.now + PAST_SECONDS, cycle)
        finally:
            driver.stop()  # do not wait for a cycle that waits for a move
            service.close()


def run(folder: Path, clock: SystemClock, options: Options) -> None:
    """Run the site and show it until the time is over or a picture complete, or until a signal wakes the clock."""
    width = PICTURE_COLUMNS if options.picture else None
    screen = Screen(Console(highlight=False, record=bool(options.picture), width=width), library("demo"))
    with ExitStack() as running:
        screen.console.print(first_line(screen.scenario), style="bold")
        exporter, tierd = free_ports(*map(options.port, (9169, 9170)))
        running.enter_context(heard(screen.log))
        site = running.enter_context(running_site(folder, screen.scenario, exporter, tierd, clock))
        screen.begin(site)
        if screen.console.is_terminal and not screen.console.is_dumb_terminal and not options.picture:
            running.enter_context(screen.live())
        while not clock.wait(CYCLE_SECONDS) and screen.seconds <= options.seconds:
            site.cycle()
            screen.update()
            if options.picture and screen.summary:
                break
        screen.ended = True
    if options.picture:
        options.picture.write_text(svg(screen.console, "make demo"), encoding="utf-8")


@contextmanager
def running_exporter(root: Path, port: int, clock: Clock) -> Iterator[str]:
    """Run the exporter as a process over the parameter files below ``root``; yields its URL when it answers.

    Its log is ``exporter.log`` next to ``root``. Raises OSError.
    """
    (port,) = free_ports(port)
    url = f"http://127.0.0.1:{port}/metrics"
    command = [sys.executable, "-m", "exporter", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys",
               f"--web.listen-address=127.0.0.1:{port}"]
    with program(command, url, root.parent / "exporter.log", clock):
        yield url


# What the terminal shows

CHART_ROWS = 8
"""With the introduction the chart fits a terminal of 24 lines."""
AXIS_COLUMNS = 22
"""Columns of the chart's axis, on both sides."""
CHART_SECONDS = 145
"""Least range of the chart."""
UNSEEN_SECONDS = 2 + CYCLE_SECONDS
"""A mark may be this much later than the last point of the chart."""
SMOOTH_SECONDS = 3
"""Each point of the chart is a mean over this time."""
MARKS = (("neighbour", "red"), ("found", "yellow"), ("layout set", "cyan"), ("verdict", "green"))
"""Vertical lines of the chart, in the order of :meth:`Story.times`, and their colours."""


@dataclass(frozen=True, slots=True)
class Story:
    """What tierd reported about the noisy neighbour, in seconds since the beginning of the demonstration."""

    neighbour_starts: float
    begun_at: float
    """Epoch seconds of the beginning."""
    case: ExplainAnswer | None = None

    @property
    def times(self) -> tuple[float | None, ...]:
        if self.case is None:
            return self.neighbour_starts, None, None, None
        layouts = [act.time for act in self.case.acts if act.kind == ActKind.SET_DEFAULT_LAYOUT]
        case, times = self.case.case, (min(layouts, default=None), self.case.case.judged_at)
        return (self.neighbour_starts, case.since - self.begun_at, *(
            time - self.begun_at if time else None for time in times))


class Screen:
    """The terminal: log lines above, and below them, where it is a terminal, the chart of the victim."""

    def __init__(self, console: Console, scenario: Scenario) -> None:
        self.console = console
        self.scenario = scenario
        self.summary: list[tuple[str, str]] = []
        """Before, during, after and what was changed; empty before the verdict."""
        self.ended = False
        """Whether the site is being stopped; what tierd logs then is of no interest."""
        self._site: Site | None = None
        self._story = Story(scenario.jobs[1].start_seconds, 0.0)
        self._enough: set[str] = set()
        self._live: Live | None = None

    @property
    def seconds(self) -> float:
        return self._site.cluster.now - PAST_SECONDS if self._site else 0.0

    def begin(self, site: Site) -> None:
        self._site = site
        self._story = replace(self._story, begun_at=site.begun_at)
        for line in introduction(self.scenario, site, tierctl_command()):
            self.console.print(line, soft_wrap=line.startswith("  "))  # a command is copied whole

    def log(self, sentence: str) -> None:
        """Print one line that tierd logged. Long lines are broken at the width of the terminal.

        Of the lines about moves, only the first of each kind is printed; the caption of the chart counts the others.
        """
        first_word = sentence.split(" ", 1)[0]
        if self._site is None or self.ended or first_word in self._enough:
            return  # before the introduction: the line about the port
        if first_word in OF_MOVES:
            self._enough.add(first_word)
        self.console.print(log_line(self.seconds, sentence))

    @contextmanager
    def live(self) -> Iterator[None]:
        """Keep the chart below the log."""
        with Live(self._bottom(), console=self.console, auto_refresh=False, transient=True) as self._live:
            yield
        self._live = None
        self.console.print(self._bottom())

    def update(self) -> None:
        """Ask tierd for the case and show the chart; after the verdict show the summary, once."""
        assert self._site is not None
        if not self.summary:
            case = noisy_case(self._site.socket)
            self._story = replace(self._story, case=case or self._story.case)
            if case and case.case.judged_at:
                self.summary = summary_of(self._story)
                if not self._live:
                    self.console.print(self._bottom())
                undo = f"{tierctl_command()} undo F{case.case.finding} --socket {self._site.socket}"
                self.console.print(Group("", summary_table(self.summary)))
                self.console.print(f"[bold]  undo[/]     {undo}", soft_wrap=True)
                self.console.print("\nThe cluster runs until Ctrl-C.\n")
        if self._live:
            self._live.update(self._bottom(), refresh=True)

    def _bottom(self) -> RenderableType:
        assert self._site is not None
        stream, cluster = self.scenario.jobs[0].job_id, self._site.cluster
        rates = cluster.throughput(stream, 0, int(cluster.now) - 1)  # the last second is not whole
        drawn = chart("stream, MB/s", rates, self._story.times, self.console.width)
        return Group(drawn, caption(self._story.case))


PICTURE_COLUMNS = 110


def svg(recorder: Console, title: str) -> str:
    return re.sub(r"\s*@font-face \{[^}]*\}", "", recorder.export_svg(title=title))


def first_line(scenario: Scenario) -> str:
    start = scenario.jobs[1].start_seconds
    return f"About 90 s: at {start:.0f} s small files slow a stream; tierd finds them and acts."


def introduction(scenario: Scenario, site: Site, tierctl: str) -> Iterator[str]:
    stream, noise = scenario.jobs
    yield (f"A simulated Lustre with two pools, flash and hdd. Job {stream.job_id} writes a stream to hdd, job "
           f"{noise.job_id} small files on the same targets. The chart shows the stream, the lines above it what tierd "
           "finds and does. Ctrl-C ends it and deletes its files.\n")
    yield f"  tierd     {site.tierd_url}"
    yield f"  exporter  {site.exporter_url.removesuffix('metrics')}"
    yield f"  tierctl   {tierctl} status --socket {site.socket}\n"


def tierctl_command() -> str:
    installed = Path(sys.executable).parent / "tierctl"
    if not installed.exists():
        return f"{shlex.quote(sys.executable)} -m tierd.cli.tierctl"
    shorter = os.path.relpath(installed)
    return shlex.quote(shorter if len(shorter) < len(str(installed)) else str(installed))


def log_line(seconds: float, sentence: str) -> RenderableType:
    """One line of the log with its time; lines after the first are indented."""
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(width=6, justify="right", style="dim")
    row.add_column()
    style = LOG_STYLES.get(sentence.split(" ", 1)[0], "")
    row.add_row(f"{seconds:.0f} s", Text(printable(sentence.strip()), style))
    return row


OF_MOVES = frozenset({"QUEUED", "MOVED", "skipped"})
"""First words of log lines about moves."""
LOG_STYLES = {"FOUND": "bold yellow", "SET": "bold cyan", "KEPT:": "bold green", "UNDONE:": "bold red"}


def chart(title: str, rates: Sequence[float], marks: Sequence[float | None], width: int) -> RenderableType:
    """The throughput of each second as a curve, with a vertical line for each mark that has come.

    ``rates`` begin PAST_SECONDS before the time zero of the marks.
    """
    import plotille  # noqa: PLC0415 -- an extra; tests of the site do without

    points = [sum(part) / len(part) for end in range(1, len(rates) + 1)
              if (part := rates[max(0, end - SMOOTH_SECONDS):end])]
    now = len(points) - PAST_SECONDS
    columns = max(20, min(width, 120) - AXIS_COLUMNS)
    seconds = 0.5 * ceil(CHART_SECONDS / columns / 0.5) * columns  # each tenth column has a label: multiples of 5 s
    begin = max(-PAST_SECONDS, 5 * ceil((now - seconds) / 5))
    end = begin + seconds
    highest = 20.0 * (int(max(points, default=0.0) / 20) + 1)
    figure = plotille.Figure()
    figure.width, figure.height = columns, CHART_ROWS
    figure.color_mode = "names"
    figure.origin = False
    figure.set_x_limits(begin, end)
    figure.set_y_limits(0.0, highest)
    figure.x_label, figure.y_label = "s", "MB/s"
    figure.x_ticks_fkt = figure.y_ticks_fkt = lambda value, _: f"{value:.0f}"
    for (_, colour), mark in zip(MARKS, marks, strict=True):
        if mark is not None and begin <= mark <= min(end, now + UNSEEN_SECONDS):
            figure.axvline((mark - begin) / (end - begin), lc=colour)
    shown = [(second - PAST_SECONDS, point) for second, point in enumerate(points, start=1)
             if second - PAST_SECONDS > begin]
    if shown:
        figure.plot(*zip(*shown, strict=True), lc="white")
    drawn = Text.from_ansi(figure.show())
    legend = Text(" ").join([Text(title, "bold"), *(
        Text(f"| {name} {mark:.0f} s", colour) for (name, colour), mark in zip(MARKS, marks, strict=True)
        if mark is not None and mark <= now + UNSEEN_SECONDS)])
    return Group(legend, drawn)


def caption(case: ExplainAnswer | None) -> Text:
    """How many files were moved so far, for the line below the chart."""
    if case is None:
        return Text("tierd: no finding yet", "dim")
    return Text(f"tierd: F{case.case.finding}, {count_of(case.outcomes.get('migrate done', 0), 'file')} moved to flash "
                f"({bytes_text(case.bytes_moved)})", "dim")


def noisy_case(control: str) -> ExplainAnswer | None:
    """What tierd knows about its first case; None before there is one, or while tierd is busy."""
    try:
        status = StatusAnswer.from_json(ask(control, {"request": "status"}, 5.0))
        numbers = [case.finding for case in status.cases if case.state and case.finding]
        if not numbers:
            return None
        return ExplainAnswer.from_json(ask(control, {"request": "explain", "id": f"F{min(numbers)}"}, 5.0))
    except (ControlError, ValueError):
        return None


def summary_of(story: Story) -> list[tuple[str, str]]:
    """Before, during and after as tierd measured it, and what was changed."""
    assert story.case is not None
    explained, case = story.case, story.case.case
    starts, found, *_ = story.times
    assert starts is not None
    assert found is not None
    layouts = [act for act in explained.acts if act.kind == ActKind.SET_DEFAULT_LAYOUT and act.outcome == Outcome.DONE]
    changed = [f"default layout of {printable(act.place)}: {act.after}" for act in layouts]
    changed += [f"{count_of(case.moved, 'file')} moved to flash ({bytes_text(explained.bytes_moved)})"]
    usual, contended, after = case.usual or 1.0, case.contended or 0.0, case.after or 0.0
    during = (f"{rate_text(contended)} ({percent(contended / usual)}) alongside {case.aggressor}; "
              f"found {found - starts:.0f} s after it started")
    return [("before", f"{case.victim} wrote {rate_text(usual)}"), ("during", during),
            ("after", f"{rate_text(after)} ({percent(after / usual)}); tierd's verdict: {verdict_text(case.verdict)}"),
            ("changed", "; ".join(changed))]


def summary_table(lines: Sequence[tuple[str, str]]) -> RenderableType:
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(style="bold")
    rows.add_column(overflow="fold")
    for name, words in lines:
        rows.add_row(f"  {name}", Text(words))
    return rows


if __name__ == "__main__":
    sys.exit(run_until_stopped("python -m stack.demo", DESCRIPTION, run, picture=True))
