"""The status of the daemon: a snapshot, published after each step of an activity, and the rows of answers made of it.

Readers of the snapshot wait for no activity. The sentence about each cycle goes to the log and to ``systemctl status``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest

from lustre.layout.directory import DefaultStriping, setdirstripe_arguments
from lustre.layout.model import explain
from lustre.layout.setstripe import setstripe_arguments
from tierd.act.journal.entry import Default, Entry
from tierd.daemon import answers
from tierd.daemon.activities import Activity
from tierd.daemon.cases import all_cases, refusal_answer, time_row
from tierd.daemon.loop import Daemon
from tierd.daemon.states import OPEN
from tierd.detect.device_time import TargetTime
from tierd.loads import BUSY_USEC, READS, WRITES, Loads, Numbers, sums
from tierd.model import Action, Facts, Finding, Window
from tierd.rates import mean_rates
from tierd.refusal import Refusal, sentence_of
from tierd.text import count_of, shell_word

NO_WINDOW = Window(0.0, 0.0, {}, {})
Times = Mapping[str, TargetTime]


@dataclass(frozen=True)
class StatusSnapshot:
    """State of the daemon at the end of the last step of any activity."""

    window: Window = NO_WINDOW
    windows: int = 0
    """Number of windows; 0 before the first."""
    findings: Mapping[int, Finding] = field(default_factory=dict)
    """By their numbers in the journal."""
    cases: tuple[answers.Case, ...] = ()
    """Those whose finding holds first; without the reasons why not more is done, and without what is asked for singly:
    the curve, and the device time now."""
    looking_since: float = 0.0
    """Beginning of the history that tierd observed itself; 0 if the history came from Prometheus."""
    device_time: Times = field(default_factory=dict)
    """Device time of the targets whose service costs are known."""
    facts: Facts = field(default_factory=Facts)
    """Pools, and the space on their targets."""

    @cached_property
    def targets(self) -> list[answers.TargetRow]:
        """Load, space and latency of each target, and the slowdown of its streams: slowed first, then the busiest."""
        window, fill, slowdown = self.window, self.facts.fill, dict[str, float]()
        for finding in self.findings.values():
            stream = finding.evidence.of_stream
            if stream is not None and not finding.advice_only:
                for target in finding.targets:
                    slowdown[target] = max(slowdown.get(target, 0.0), stream.slowdown)
        rates, counts, latencies = rates_by(window, 0), loads_by(window, 0), latency_by_target(window)
        pool_of = {target: pool for pool, targets in self.facts.pools.items() for target in targets}
        rows = [answers.TargetRow(
            target=target, **rates.get(target, NO_LOAD), jobs=counts[target], slowdown=slowdown.get(target),
            condition=window.conditions.get(target, ""), pool=pool_of.get(target, ""),
            used=fill[target].used if target in fill else None, latency_usec=latencies.get(target))
            for target in dict.fromkeys((*counts, *window.conditions, *fill))]
        return sorted(rows, key=lambda row: (-(row.slowdown or 0), not row.condition, -row.operations, row.target))

    @cached_property
    def jobs(self) -> list[answers.JobRow]:
        """Load of each job: jobs of findings first, then the busiest."""
        serious = [f for f in self.findings.values() if not f.advice_only]
        role = {f.victim: "slowed" for f in serious if f.victim} | {
            job: "noise" for f in serious if f.aggressor for job in f.aggressors}
        rates, counts, names = rates_by(self.window, 1), loads_by(self.window, 1), self.window.namespace
        rows = [answers.JobRow(
            job=job, **rates.get(job, NO_LOAD), targets=counts[job], role=role.get(job, ""),
            creates=names[job].creates / self.window.metadata_seconds if job in names else 0.0)
            for job in dict.fromkeys((*counts, *names))]
        return sorted(rows, key=lambda row: (not row.role, -row.operations, row.job))


def snapshot_of(daemon: Daemon) -> StatusSnapshot:
    windows, gate = daemon.windows, daemon.parts.gate
    findings = {number: daemon.log.recorded(f) for f in daemon.findings if (number := daemon.log.known_number(f))}
    waiting, device_time = gate.queue.by_finding(), daemon.engine.device_time
    with daemon.store.lock:  # for a moment: the rest is made of copies
        done = [replace(case, defaults=[*case.defaults]) for case in daemon.store]
    cases = tuple(all_cases(findings, done, windows, lambda key: (gate.default_layouts.of(key), waiting[key])))
    return StatusSnapshot(
        windows[-1] if windows else NO_WINDOW, len(windows), findings=findings, cases=cases,
        looking_since=windows[0].start if windows else 0.0, device_time=device_time, facts=daemon.facts.known)


NO_LOAD = {"read_bytes": 0.0, "write_bytes": 0.0, "operations": 0.0}


def rates_by(window: Window, place: int) -> dict[str, dict[str, float]]:
    """Rates per second by target (``place`` 0) or job (1)."""
    rates = mean_rates([window], place)
    return {name: dict(zip(NO_LOAD, numbers, strict=False))
            for name, numbers in zip(rates.names, rates.numbers.tolist(), strict=True)}


def loads_by(window: Window, place: int) -> Counter[str]:
    """Number of loads by target (``place`` 0) or job (1)."""
    return Counter(key[place] for key in window.loads)


def latency_by_target(window: Window) -> dict[str, float]:
    """Mean service time of the bulk RPCs of each target, where the servers print it; microseconds."""
    loads, targets = Loads.of(window.loads), Numbers[str]()
    timed = loads.rows(loads.numbers[:, BUSY_USEC] > 0)
    found = sums(targets.of(timed.target.tolist(), len(timed)), timed.numbers, len(targets)).tolist()
    return {target: each[BUSY_USEC] / count for target, each in zip(targets, found, strict=True)
            if (count := each[READS] + each[WRITES])}


def pool_rows(view: StatusSnapshot) -> tuple[answers.PoolRow, ...]:
    loads, facts, times = {row.target: row for row in view.targets}, view.facts, view.device_time
    rows = []
    for pool, members in sorted(facts.pools.items()):
        space = [facts.fill[target] for target in members if target in facts.fill]
        active = [loads[target] for target in members if target in loads]
        busy = [times[target].utilisation for target in members if target in times]
        rows.append(answers.PoolRow(
            pool, len(members), sum(s.size_bytes for s in space), sum(s.avail_bytes for s in space),
            sum(row.read_bytes for row in active), write_bytes=sum(row.write_bytes for row in active),
            operations=sum(row.operations for row in active),
            utilisation=min(sum(busy) / len(busy), 1.0) if busy else None))
    return tuple(rows)


TARGETS_SHOWN = 8
"""Limit on the targets whose device time ``tierctl status`` shows."""


def device_time_rows(times: Times) -> tuple[answers.TargetTimeRow, ...]:
    """The busiest targets, and the jobs that take most of their service time."""
    busiest = nlargest(TARGETS_SHOWN, times.values(), key=lambda time: time.utilisation)
    return tuple(time_row(time.target, [time]) for time in busiest)


def finding_answer(finding: Finding, number: int | None = None, why_not: Sequence[Refusal] = (),
                   sentence: str = "") -> answers.FindingAnswer:
    """A finding, its number in the journal if it has one, why not more is done, and the sentence of its case."""
    return answers.FindingAnswer.of(
        finding, id=number, why_not=tuple(map(refusal_answer, why_not)),
        evidence={"sentence": sentence or finding.sentence,
                  **{name: round(value, 6) for name, value in finding.evidence.numbers().items()}})


def action_answer(action: Action) -> answers.ActionAnswer:
    layout, striping = action.layout, action.striping
    words = setdirstripe_arguments(striping) if striping is not None else setstripe_arguments(layout)
    components = layout.components if striping is None else ()
    return answers.ActionAnswer.of(action, action=action.kind, layout=" ".join(words),
                                   components=tuple(map(answers.ComponentAnswer.of, components)))


def act_answer(entry: Entry) -> answers.ActAnswer:
    return answers.ActAnswer.of(entry, time=entry.intended_at, before=layout_words(entry.before),
                                after=layout_words(entry.after))


def layout_words(default: Default) -> str | None:
    """A layout, or a default striping of directories, in words; None if there is neither."""
    if isinstance(default, DefaultStriping):
        return f"lfs setdirstripe {' '.join(setdirstripe_arguments(default))}"
    return explain(default) if default else None


def jobs_of(findings: Iterable[Finding | answers.Case]) -> list[str]:
    return [job for finding in findings for job in (finding.aggressor, finding.victim) if job]


STALLED_SECONDS = 60.0
"""If moves are queued and none ends for so long, status reports them as stalled, with the reason."""


def stalled_sentences(daemon: Daemon, activities: Sequence[Activity], now: float) -> list[str]:
    """A sentence for each activity that is stalled or late, with the reason."""
    found, gate = [], daemon.parts.gate
    if daemon.stale_for:
        found.append(f"the last reading of the counters is {daemon.stale_for:.0f} s old: no acts start before the next")
    moving = next((each for each in activities if each.name == "move"), None)
    idle = now - max(gate.last_move_at, gate.waiting_since)
    if gate.waiting and idle > STALLED_SECONDS and not gate.queue.gives_way:
        why = (sentence_of(gate.operating_state.last_held) or next(iter(daemon.blocking_faults), "")
               or gate.queue.waits_for)
        if not why and moving is not None and moving.begun_at:
            why = moving.waits_for or f"{moving.doing} has taken {now - moving.begun_at:.0f} s so far"
        why = why or "the reason is not known"
        found.append(f"no move has ended for {idle:.0f} s while {gate.waiting} are queued: {why}")
    return found


def socket_options(path: str) -> str:
    """Options of tierctl for a control socket, as they are typed.

    >>> socket_options("/run/tierd/tierd.sock"), socket_options("/run/tierd/scratch/tierd.sock")
    ('', ' --fs scratch')
    >>> socket_options("/tmp/x y.sock")
    " --socket '/tmp/x y.sock'"
    """
    parts = path.split("/")
    if parts[:3] == ["", "run", "tierd"] and parts[-1] == "tierd.sock" and len(parts) in {4, 5}:
        return f" --fs {shell_word(parts[3])}" if len(parts) == 5 else ""
    return f" --socket {shell_word(path)}"


def cycle_sentence(view: StatusSnapshot, daemon: Daemon) -> str:
    """Summary of one cycle: load, findings, queue and what holds acts back."""
    gate, state = daemon.parts.gate, daemon.parts.gate.operating_state
    if not view.windows:
        seen = "first reading; findings need a second one"
    else:
        targets, jobs = len({target for target, _ in view.window.loads}), len(view.window.jobs)
        advice = sum(f.advice_only for f in view.findings.values())
        seen = f"{count_of(jobs, 'job')} on {count_of(targets, 'target')}, "
        seen += count_of(len(view.findings) - advice, "finding") + (f", {advice} advice" if advice else "")
    open_cases = sum(case.state in OPEN for case in view.cases)
    parts = [seen, f"{daemon.counters.cycle_seconds:.1f} s"] if view.windows else [seen]
    if open_cases:
        parts.append(f"{count_of(open_cases, 'remediation')} without a verdict")
    if gate.waiting:
        parts.append(f"{count_of(gate.waiting, 'move')} queued")
    if state.last_held:
        parts.append(f"no acts: {sentence_of(state.last_held)}")
    elif state.draining:
        parts.append(f"no new acts: {state.draining}")
    return "; ".join([*parts, *daemon.faults.values()])
