"""The pages on tierd's port, made from the answers that tierctl gets.

Templates are in ``pages/``, style, script and icon in ``assets/``. Every text goes through ``printable`` and Jinja's
escaping, because names of jobs, users and files may hold anything. Rendering takes no lock and asks the file system
nothing: its data are the published status, and for the history the journal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, urlencode
from zlib import crc32

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from tierd.acts import ActKind, Outcome
from tierd.config.act import Mode
from tierd.daemon import answers
from tierd.daemon.charts import case_chart, rate_charts
from tierd.daemon.states import OPEN, files_text
from tierd.refusal import Reason
from tierd.text import bytes_text, count_of, duration_text, evidence_parts, percent, printable, quoted, rate_text

HERE = Path(__file__).parent
TOP_ROWS, TOP_CASES, MANY_ROWS, ALL_ROWS = 5, 20, 500, 10_000
"""Rows of a table and cases on the first page; rows on the pages of targets and jobs, and with ``?rows=all``."""
RANGES = {"1h": 3600, "6h": 6 * 3600, "1d": 86400, "7d": 7 * 86400, "30d": 30 * 86400}
"""Ranges of charts in seconds, by their words."""
LISTED_BY = "search", "sort"
LONGEST_TEXT = 1024
HISTORY_ROWS = 500
HISTORY_FILTERS = ("path", "job", "case", "outcome", "act", "since")
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
NAMED = re.compile(r"/(?:case/(?=F)|order/(?=[DO]))([FDO][0-9]{1,17})")
"""Paths of a finding or an order."""
RECOVERED_SHARE = 0.95
"""A victim with this share of its usual throughput is not called slow, although its finding holds for some time."""
BUTTONS: Mapping[str, tuple[str, Callable[[answers.Json], answers.ChangeAnswer]]] = {
    **dict.fromkeys(("pause", "resume", "drain"), ("reason", answers.OperatingStateAnswer.from_json)),
    **dict.fromkeys(("apply", "decline"), ("id", answers.DecisionAnswer.from_json)),
    "undo": ("id", answers.undo_from_json), "promote": ("path", answers.OrderAnswer.from_json)}
"""What buttons ask for: the argument of the request, and the form of its answer."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """The user who views a page."""

    user: str = ""
    """Empty if the port has no passwords."""
    token: str = ""
    """Token of the user's forms; empty if the user may change nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar, in percent of its width."""

    x: float
    width: float
    name: str
    css: str
    share: float


class PageError(Exception):
    """A page that says what is wrong with the request."""

    def __init__(self, status: str, body: str) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class Pages:
    """Renders the pages. ``ask`` answers like the control socket."""

    def __init__(self, ask: answers.Ask) -> None:
        self._ask = ask
        self.assets = load_assets()
        self._jinja = environment()

    def page(self, path: str, query: Mapping[str, str], viewer: Viewer) -> str | None:
        """Return the page with this path, or None for an unknown path.

        Raises PageError for wrong arguments and unknown names, NoAnswerError if a request has no answer.
        """
        if path == "/":
            return self._render("overview.html", viewer, TOP_ROWS)
        if path in {"/targets", "/jobs"}:
            return self._list(path[1:], query, viewer)
        for of in ("target", "job"):
            if path.startswith(f"/{of}/") and len(path) > len(of) + 2:
                return self._about(of, path[len(of) + 2:], query, viewer)
        if path == "/history":
            return self._search(query, viewer)
        if named := NAMED.fullmatch(path):
            return self._case(named[1], viewer)
        found = runbook(path)
        return found and self._jinja.get_template("runbook.html").render(name=found[0], body=Markup(found[1]))  # noqa: S704

    def _list(self, of: str, query: Mapping[str, str], viewer: Viewer) -> str:
        asked = {name: query[name] for name in LISTED_BY if query.get(name)}
        try:
            if wrong := [name for name in query if name not in {*LISTED_BY, "rows"}]:
                raise ValueError(f"{of} are not listed by {wrong[0]!r:.80}, but by {' and '.join(LISTED_BY)}")
            found = answers.ListAnswer.from_json(self._ask(
                {"request": "list", "of": of, "most": ALL_ROWS if query.get("rows") == "all" else MANY_ROWS, **asked}))
        except ValueError as error:
            raise self._wrong(400, str(error), f"/{of}", f"all {of}", viewer) from error
        return self._render(f"{of}.html", viewer, found=found, asked=asked)

    def _about(self, of: str, name: str, query: Mapping[str, str], viewer: Viewer) -> str:
        words = query.get("range", "1h")
        if words not in RANGES:
            raise self._wrong(400, f"{words!r:.80} is not a range; known: {', '.join(RANGES)}",
                              link(f"/{of}/", name), name, viewer)
        try:
            about = answers.AboutAnswer.from_json(self._ask({"request": "about", of: name}))
        except ValueError as error:
            raise self._wrong(404, f"{of} {quoted(name[:LONGEST_TEXT])}: {error}", f"/{of}s", f"all {of}s",
                              viewer) from error
        rates = answers.RatesAnswer.from_json(self._ask({"request": "rates", of: name, "seconds": RANGES[words]}))
        return self._render("about.html", viewer, about=about, of=of, rates=rates, chosen=words,
                            ranges=tuple(RANGES), charts=rate_charts(rates))

    def _wrong(self, status: int, sentence: str, where: str, what: str, viewer: Viewer) -> PageError:
        reason, title = {400: ("Bad Request", "Not understood"), 404: ("Not Found", "Not found")}[status]
        body = self._render("wrong.html", viewer, title=title, sentence=sentence, where=where, what=what)
        return PageError(f"{status} {reason}", body)

    def _search(self, query: Mapping[str, str], viewer: Viewer) -> str:
        wanted: dict[str, object] = {"last": HISTORY_ROWS}
        try:
            wanted |= search_of(query)
            found = answers.HistoryAnswer.from_json(self._ask({"request": "history", **wanted}))
        except ValueError as error:
            raise self._wrong(400, str(error), "/history", "the whole history", viewer) from error
        return self._render("history.html", viewer, history=found, query=query, limit=HISTORY_ROWS)

    def _case(self, name: str, viewer: Viewer) -> str:
        """A finding, or an order."""
        try:
            story = answers.ExplainAnswer.from_json(self._ask({"request": "explain", "id": name}))
        except ValueError as error:
            raise self._wrong(404, str(error), "/history", "the whole history", viewer) from error
        return self._render("case.html", viewer, story=story, name=name)

    def done(self, form: Mapping[str, str], viewer: Viewer) -> tuple[str, bool]:
        """Carry out what a button asks for; the page about it, and whether it succeeded."""
        try:
            lines, well = self._carried_out(form, viewer.user)
        except (ValueError, answers.NoAnswerError) as error:
            lines, well = [str(error)], False
        return self._render("done.html", viewer, lines=lines, well=well), well

    def _carried_out(self, form: Mapping[str, str], user: str) -> tuple[list[str], bool]:
        do, by = form.get("do", ""), f"{user} (web)"
        if do not in BUTTONS:
            raise ValueError(f"this page has no button {do!r:.40}")
        argument, decode = BUTTONS[do]
        value = form.get(argument, "") or (f"by {by}" if argument == "reason" else "")
        answer = decode(self._ask({"request": do, argument: value, "by": by}))
        return answer.lines, answer.succeeded

    def _render(self, template: str, viewer: Viewer, rows: int = 1, **more: object) -> str:
        overview = answers.OverviewAnswer.from_json(
            self._ask({"request": "overview", "most": rows, "cases": TOP_CASES}))
        return self._jinja.get_template(template).render(
            o=overview, viewer=viewer, state=operating_state(overview), headline=headline(overview),
            now=overview.time, **more)


def search_of(query: Mapping[str, str]) -> dict[str, object]:
    """The request for a search of the history. Raises ValueError for what cannot be searched."""
    if wrong := [name for name in query if name not in HISTORY_FILTERS]:
        raise ValueError(f"the history is not filtered by {wrong[0]!r:.80}, but by {', '.join(HISTORY_FILTERS)}")
    wanted: dict[str, object] = {name: query[name] for name in HISTORY_FILTERS[:5] if query.get(name)}
    if since := query.get("since", ""):
        try:
            time = datetime.fromisoformat(since)
        except ValueError:
            raise ValueError(f"{since!r} is not a time; write 2026-11-20 or 2026-11-20T08:00, in UTC") from None
        wanted["since"] = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return wanted


# Words


@dataclass(frozen=True, slots=True)
class Notice:
    """What an administrator wants to know first: a few words, and a sentence."""

    kind: str
    """CSS class."""
    head: str
    text: str


def operating_state(state: answers.StatusAnswer) -> Notice:
    """Whether tierd acts, or what holds acts back; the first of pause, fault, hold, drain, dry run and observe."""
    word, why = state.restraint
    if word:
        return Notice("paused" if word == "PAUSED" else "held", word, f"{why}. tierd starts no new acts.")
    if state.dry_run:
        return Notice("dry", "DRY RUN", "tierd plans and records acts. It changes nothing.")
    modes = {state.mode, *state.scopes.values()}
    if modes == {Mode.OBSERVE}:
        return Notice("dry", state.mode, "The mode allows no acts: tierd reports findings and changes nothing.")
    return Notice("acts", "acts", "tierd acts on findings.")


def headline(state: answers.OverviewAnswer) -> Notice:
    """Who is slowed, whether tierd can tell, or that it is still learning."""
    cases = state.cases
    if "blind" in state.faults:
        return Notice("warn", "The counters cannot be read", "Slowed streams are unknown. All values are older.")
    if slowed := [case for case in cases if is_slowed(case)]:
        worst = min(slowed, key=rate_share)
        more = f" {count_of(len(slowed) - 1, 'further stream')} slowed too." if len(slowed) > 1 else ""
        if rate_share(worst) >= RECOVERED_SHARE:
            return Notice("warn", case_title(worst),
                          f"{worst.aggressor} still works on the same targets, or has just left them.")
        if not worst.active:
            return Notice("warn", case_title(worst), f"The finding has ended, and F{worst.finding} is {worst.state}.")
        return Notice("bad", case_title(worst), f"{worst.aggressor} works on the same targets.{more}")
    if state.faults or any(source.stale for source in state.sources):
        return Notice("warn", "Some sources are unavailable", "The sources below show what is missing.")
    if state.learning:
        return Notice("learning", f"Learning: {state.windows} of {state.least_windows} readings",
                      "Too little is known to rule out slowed streams.")
    if not state.device_time:
        return Notice("learning", "No finding; device time is not known yet",
                      "An aggressor is found once a stream has run for a while.")
    return Notice("quiet", "Nobody is slowed",
                  f"{count_of(state.all_jobs, 'job')} on {count_of(state.all_targets, 'target')}.")


def is_slowed(case: answers.Case) -> bool:
    """Whether the victim of a finding that holds, or of a case without a verdict, lacks throughput."""
    if not (case.victim and case.usual):
        return False
    return case.active or (case.state in OPEN and rate_share(case) < RECOVERED_SHARE)


def rate_share(case: answers.Case) -> float:
    """What the victim has of its usual throughput."""
    now = case.contended if case.now is None else case.now
    return max(now or 0.0, 0.0) / case.usual if case.usual else 1.0


def case_title(case: answers.Case) -> str:
    if not case.victim:
        return f"{case.kind}: {quoted(case.subject or case.aggressor)}"
    if is_slowed(case) and rate_share(case) >= RECOVERED_SHARE:
        return f"{case.victim} is back at its usual throughput"
    if is_slowed(case):
        return f"{case.victim} has {percent(rate_share(case))} of its usual throughput now"
    return f"{case.victim} was slowed by {case.aggressor}"


# Pictures


def bar(row: answers.TargetTimeRow, case: answers.Case | None = None,
        roles: Mapping[str, str] | None = None) -> list[Part]:
    """Device time by job as parts of a bar; the rest of the busy time is of other jobs."""
    busy = min(max(row.utilisation, 0.0), 1.0)
    role = {case.aggressor: "noise", case.victim: "slowed"} if case is not None else roles or {}
    shares = [*row.jobs, answers.JobTimeRow("other jobs", max(0.0, 1 - sum(job.share for job in row.jobs)), 0.0)]
    parts: list[Part] = []
    at = 0.0
    for number, job in enumerate(shares):
        width = 100 * busy * job.share
        css = "other" if number == len(row.jobs) else job_class(job.job, role)
        if width >= 0.3:
            parts.append(Part(round(at, 2), round(width, 2), job.job, css, job.share))
        at += width
    return parts


def job_class(job: str, role: Mapping[str, str]) -> str:
    """CSS class of a job: that of its role, or one of six colours that stays with the job."""
    return role.get(job) or f"c{crc32(job.encode('utf-8', 'surrogateescape')) % 6}"


def roles_of(overview: answers.OverviewAnswer) -> dict[str, str]:
    """Jobs of the cases: ``slowed`` or ``noise``. They keep their colour when a finding has ended."""
    found: dict[str, str] = {}
    for case in reversed(overview.cases):
        found |= {case.victim: "slowed"} | {case.aggressor: "noise"}
    return {job: role for job, role in found.items() if job}


MAX_COLOURS = 10


def colours(rows: Sequence[answers.TargetTimeRow], roles: Mapping[str, str]) -> list[tuple[str, str]]:
    """The jobs in the bars of a table and their CSS classes: those that take most on any target first."""
    most: dict[str, float] = {}
    for row in rows:
        for job in row.jobs:
            most[job.job] = max(most.get(job.job, 0.0), job.share * row.utilisation)
    jobs = sorted(most, key=lambda job: (job not in roles, -most[job]))[:MAX_COLOURS]
    return [*((job, job_class(job, roles)) for job in jobs), ("all other jobs", "other")]


# The environment of the templates


@cache
def load_assets() -> Mapping[str, tuple[bytes, str]]:
    """The files that pages load, and their content types, by path. They are read once."""
    return {f"/static/{path.name}": (path.read_bytes(), KINDS[path.suffix])
            for path in sorted((HERE / "assets").iterdir()) if path.suffix in KINDS}


@cache
def environment() -> Environment:
    """The templates with their filters; each is compiled once. A name that a template does not get is an error."""
    made = Environment(loader=FileSystemLoader(HERE / "pages"), autoescape=True, undefined=StrictUndefined,
                       finalize=lambda value: value if isinstance(value, Markup) else printable(str(
                           "" if value is None else value)), trim_blocks=True, lstrip_blocks=True, auto_reload=False)
    made.filters |= {"bytes": bytes_text, "rate": rate_text, "percent": percent, "ago": duration_text,
                     "clock": partial(day_text, form="%H:%M:%S"), "day": day_text,
                     "stamp": partial(day_text, form="%Y-%m-%dT%H:%M:%SZ"), "quoted": quoted, "usec": usec_text}
    made.globals |= {
        "chart": case_chart, "bar": bar, "case_title": case_title,
        "count": count_of, "drain_states": answers.DRAIN_STATES,
        "files_text": files_text, "not_approved": Reason.NOT_APPROVED,
        "roles_of": roles_of, "colours": colours, "link": link, "evidence": evidence_parts,
        "outcomes": [outcome.value for outcome in Outcome], "kinds": [kind.value for kind in ActKind],
        "asset": {path.rpartition("/")[2]: f"{path}?{sha256(data).hexdigest()[:8]}"  # browsers keep the file
                  for path, (data, _) in load_assets().items()}}
    return made


def link(path: str, name: str = "", /, **query: object) -> str:
    """An address of this page, of a name if it is given. Names and values may hold anything.

    >>> link("/history", job="a b&c", path=""), link("/job/", "a/../b?", range="1d")
    ('/history?job=a+b%26c', '/job/a%2F..%2Fb%3F?range=1d')
    """
    given = {name: str(value) for name, value in query.items() if value not in {"", None}}
    asked = urlencode(given, errors="surrogateescape")
    return path + quote(name, "", errors="surrogateescape") + (f"?{asked}" if asked else "")


def day_text(time: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Date and time in UTC."""
    return datetime.fromtimestamp(time, UTC).strftime(form)


def usec_text(usec: float | None) -> str:
    """A latency.

    >>> usec_text(850.0), usec_text(12_345.0), usec_text(2_500_000.0), usec_text(None)
    ('850 µs', '12.3 ms', '2.5 s', '')
    """
    if usec is None:
        return ""
    if usec < 1000:
        return f"{usec:.0f} µs"
    return f"{usec / 1000:.1f} ms" if usec < 1e6 else f"{usec / 1e6:.1f} s"


FOLDERS = ("runbooks", "docs/runbooks")
"""Below the folder of all rooms: installed, and in a checkout."""
_NAME = re.compile(r"/runbooks/([A-Za-z]+)(\.md)?")
_LINK = re.compile(r"\[([^\]]+)\]\((?![A-Za-z]+\.md\))[^)]*\)")
"""Links to anything but another runbook: no such page is served."""


def runbook(path: str) -> tuple[str, str] | None:
    """Title and HTML of ``/runbooks/TierdDown``, or of ``/runbooks/``, which lists all; None for any other path."""
    named = _NAME.fullmatch(path)
    name = "README" if path == "/runbooks/" else named[1] if named else ""
    text = _text(name)
    if text is None:
        return None
    return "Runbooks" if name == "README" else name, MarkdownIt("commonmark", {"html": False}).render(text)


@lru_cache(maxsize=256)
def _text(name: str) -> str | None:
    rooms = Path(__file__).parents[2]
    found = next((file for folder in FOLDERS if (file := rooms / folder / f"{name}.md").is_file()), None)
    return None if found is None else _LINK.sub(r"\1", found.read_text(encoding="utf-8"))
