"""What ``tierctl top`` asks the daemon, of now or of the past, and the lines above its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.text import Text

from tierd.cli.client import time_text
from tierd.cli.control import headline, queue_line
from tierd.cli.top_tables import Rows, job_rows, rate_rows, target_rows
from tierd.daemon.answers import AboutAnswer, Json, MomentAnswer, StatusAnswer, TopAnswer
from tierd.text import bytes_text, duration_text, printable

Shown = tuple[list[Text], tuple[Rows, Rows]]
"""The lines above the tables, and the tables of targets and jobs."""


class Source(Protocol):
    """What is asked, and how the answers are shown."""

    time: float | None
    """What is shown; None for now."""

    @property
    def requests(self) -> Sequence[Json]:
        """What to ask now. Called in another thread."""

    def shown(self, *found: Json) -> Shown:
        """Raises ValueError for answers that cannot be read."""


class Now:
    """The last reading."""

    time: float | None = None

    def __init__(self, most: int) -> None:
        self.requests = ({"request": "top", "most": most},)

    def shown(self, *found: Json) -> Shown:
        answer = TopAnswer.from_json(found[0])
        return head_now(answer), (target_rows(answer), job_rows(answer))


class Past:
    """The records of one time, and steps to others."""

    def __init__(self, time: float) -> None:
        self.time: float | None = time
        self._moment = MomentAnswer()

    @property
    def requests(self) -> Sequence[Json]:
        return {"request": "moment", "time": self.time}, {"request": "status"}

    def shown(self, *found: Json) -> Shown:
        moment, state = MomentAnswer.from_json(found[0]), StatusAnswer.from_json(found[1])
        self._moment, self.time = moment, moment.time or self.time
        return head_then(moment, state), (rate_rows("targets", moment.targets, len(moment.targets)),
                                          rate_rows("jobs", moment.jobs, len(moment.jobs)))

    def step(self, seconds: float) -> None:
        """Go to the next record after so many seconds, or to the one before so many if they are negative."""
        last = self._moment
        wanted = last.later if seconds > 0 else last.earlier
        if last.time is not None and wanted is not None:
            self.time = max(wanted, last.time + seconds) if seconds > 0 else min(wanted, last.time + seconds)


def head_now(answer: TopAnswer) -> list[Text]:
    """What tierd does, and what it has found."""
    held = answer.held or answer.draining
    parts = [Text(printable(f"tierd {headline(answer)}"), "bold red" if held else "bold")]
    parts += [Text(printable(f"CANNOT: {words}"), "bold red") for words in answer.faults.values()]
    parts.append(Text(f"last reading {time_text(answer.last_cycle)}, over {answer.seconds:.0f} s; "
                      f"{queue_line(answer)}, {bytes_text(answer.moved_bytes)} moved"))
    serious = [f for f in answer.findings if not f.advice_only]
    parts += [Text(printable(f"F{f.id} {f.kind}: {f.sentence}"), "red") for f in serious[:MAX_FINDINGS]]
    if not serious:
        parts.append(Text(quiet_text(answer), "green"))
    if answer.advice:
        parts.append(Text(f"advice: {answer.advice}; see tierctl advise"))
    return parts


MAX_FINDINGS = 4


def quiet_text(answer: TopAnswer) -> str:
    """The line for a cycle without findings."""
    if not answer.seconds:
        return "no reading yet"
    if answer.learning:
        return "learning: too few readings to detect slow streams"
    return "no interference found" if answer.jobs else "no active jobs"


def head_then(moment: MomentAnswer, state: StatusAnswer) -> list[Text]:
    """The time of a record, and the findings that held then."""
    if moment.time is None:
        return [Text("tierd has no record of the past yet: the first one comes after a minute", "bold")]
    begun = moment.time - moment.seconds
    cases = [case for case in state.cases if case.since <= moment.time and begun <= (case.ended_at or state.time)]
    return [Text(f"REPLAY {time_text(moment.time)}, over {duration_text(moment.seconds)}", "bold reverse"),
            *(Text(printable(f"{case.name} {case.kind}: {case.sentence}"), "red") for case in cases[:MAX_FINDINGS])]


def cases_of(about: AboutAnswer, until: float | None) -> list[Text]:
    """The last findings and orders about a target or job that had begun at a time; None is now."""
    return [Text(printable(f"{case.name} {time_text(case.since)} {case.sentence} ("
                           f"{case.done_text if case.state else 'active' if case.active else 'ended'})"),
                 "red" if case.active else "")
            for case in about.cases if case.since <= (until or case.since)][:MAX_FINDINGS]
