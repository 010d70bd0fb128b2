"""A dashboard: variables on top, rows of panels 24 columns wide, annotations, and links to other dashboards.

Thresholds and annotations that several dashboards use are here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dashboards.panels import (
    BLUE,
    DATASOURCE,
    GREEN,
    NEUTRAL,
    ORANGE,
    RED,
    YELLOW,
    Json,
    Panel,
    Query,
    Steps,
    Word,
    coloured,
    dashed,
    of_cluster,
    sized,
    stat,
    table,
    timeseries,
)

SOURCE: Json = {
    "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "regex": "",
    "hide": 0, "refresh": 1, "multi": False, "includeAll": False,
    "current": {"selected": True, "text": "default", "value": "default"}, "options": [],
}
"""The Prometheus data source: Grafana's default one, until another is selected.

A variable works in provisioned files, whatever the name of the data source. Without ``current``, Grafana takes the
first by name.
"""


def choice(name: str, label: str, query: str, *, everything: bool = True, text: str = "",
           all_value: str = ".*") -> Json:
    """Values of a label. With ``everything``, All can be selected and is the default; it means ``all_value``."""
    query = of_cluster(query)
    made: Json = {
        "name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": query,
        "query": {"query": query, "refId": f"variable-{name}"}, "regex": "", "sort": 5, "refresh": 2, "hide": 0,
        "multi": everything, "includeAll": everything, "options": [], "skipUrlSync": False, "description": text,
    }
    if everything:
        made |= {"allValue": all_value, "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
    else:
        made["current"] = {}
    return made


SIZES = '__name__=~"lustre_(filesystem|ost|mdt)_size_bytes"'
CLUSTER = choice("cluster", "Cluster", f"label_values({{{SIZES}}}, cluster)",
                 text="The label cluster, if Prometheus' scrape configuration sets it.")
FS = choice("fs", "File system", f'label_values({{{SIZES}, cluster=~"$cluster"}}, fs)')
POOL = choice("pool", "Pool", 'label_values(fs_target:lustre_pool_target:info{fs=~"$fs"}, pool)')
TARGET = choice("target", "Target", 'label_values({__name__=~"lustre_(ost|mdt)_size_bytes", fs=~"$fs"}, target)')
JOB = choice("jobid", "Job", 'label_values({__name__=~"fs_job:lustre_job_(bytes|metadata_operations):rate2m", '
              'fs=~"$fs"}, jobid)',
             text="A Lustre job, by the label jobid (see jobid_var).")
CLIENT = choice("instance", "Client", 'label_values(instance_fs:lustre_llite_bytes:rate2m{fs=~"$fs"}, instance)',
                everything=False, text="For the row One client. The other rows show all clients.")
TAG = "lustre"
MENU: Json = {
    "type": "dashboards", "title": "Lustre", "tags": [TAG], "asDropdown": False, "icon": "external link",
    "keepTime": True, "includeVars": True, "targetBlank": False, "tooltip": "", "url": "",
}
"""All dashboards of the set, with the time range and variables of this one."""


def link_from_value(board: str, title: str, **variables: str) -> Json:
    """A data link from a value to a dashboard. Each variable is given as the label with its value.

    >>> link_from_value("targets", "This target", target="target")["url"].count("var-target=${__field.labels.target}")
    1
    """
    chosen = "".join(f"&var-{name}=${{__field.labels.{label}}}" for name, label in variables.items())
    return link(board, title, chosen)


def link(board: str, title: str, chosen: str) -> Json:
    kept = "${__url_time_range}&${datasource:queryparam}&${cluster:queryparam}"
    return {"title": title, "url": f"/d/lustre-{board}?{kept}{chosen}"}


def column_link(column: str, board: str, title: str, **variables: str) -> Json:
    """Links from the values of a column to a dashboard. Each variable is given as the heading of its column."""
    chosen = "".join(f'&var-{name}=${{__data.fields["{heading}"]}}' for name, heading in variables.items())
    return {"matcher": {"id": "byName", "options": column},
            "properties": [{"id": "links", "value": [link(board, title, chosen)]}]}


def job_link(column: str) -> Json:
    return column_link(column, "jobs", "This job", fs="File system", jobid=column)


TARGET_LINK = column_link("Target", "targets", "This target", fs="File system", target="Target")


SCHEMA = 39
"""Schema of Grafana 10.4. All releases from 10.0 read it."""
COLUMNS = 24


@dataclass(frozen=True, slots=True)
class Row:
    """Panels below a heading. A ``closed`` row sends no queries until it is opened."""

    title: str
    panels: tuple[Panel, ...]
    empty: str = ""
    """Text of panels without data that have none of their own."""
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard of the set."""

    name: str
    """The part of its uid that is its own."""
    title: str
    description: str
    chosen: tuple[Json, ...]
    """Variables besides the data source."""
    rows: tuple[Row, ...]
    annotations: tuple[Json, ...] = ()
    """Marks on the time axis."""

    def json(self) -> Json:
        return {
            "uid": f"lustre-{self.name}", "title": self.title, "description": self.description, "tags": [TAG],
            "schemaVersion": SCHEMA, "editable": False, "graphTooltip": 1, "refresh": "30s", "timezone": "browser",
            "time": {"from": "now-3h", "to": "now"}, "timepicker": {}, "fiscalYearStartMonth": 0, "weekStart": "",
            "links": [MENU], "annotations": {"list": list(self.annotations)},
            "templating": {"list": [SOURCE, *([CLUSTER] if FS in self.chosen else []), *self.chosen]},
            "panels": list(place_panels(self.rows)),
        }


def place_panels(rows: Sequence[Row]) -> Iterator[Json]:
    """Rows and panels with ids and positions: each panel in the first free place of its row, highest first."""
    number, y = 0, 0
    for row in rows:
        number += 1
        heading: Json = {"id": number, "type": "row", "title": row.title, "collapsed": row.closed, "panels": [],
                         "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y}}
        inside: list[Json] = []
        filled_to = [y + 1] * COLUMNS
        for panel in row.panels:
            number += 1
            top, x = min((max(filled_to[at:at + panel.width]), at) for at in range(COLUMNS - panel.width + 1))
            inside.append(replace(panel, empty=panel.empty or row.empty).json(number, x, top))
            filled_to[x:x + panel.width] = [top + panel.height] * panel.width
        y = y + 1 if row.closed else max(filled_to)
        if row.closed:
            heading["panels"] = inside
            yield heading
        else:
            yield heading
            yield from inside


FULLNESS: Steps = ((None, GREEN), (0.8, YELLOW), (0.9, ORANGE), (0.95, RED))
"Usage of targets and pools, with the thresholds of the alerts."
ANY_IS_BAD: Steps = ((None, GREEN), (1, RED))
ANY_IS_A_WARNING: Steps = ((None, GREEN), (1, YELLOW))
LOW_IS_BAD: Steps = ((None, RED), (0.5, ORANGE), (0.8, GREEN))
ALERTS = 'ALERTS{alertname=~"(Lustre|Tierd).*", alertstate="firing", severity=~"critical|warning"}'
NO_TIERD, NO_CLIENTS, NO_SERVERS = "no tierd", "no exporter on a client", "no exporter on a server"
NO_STREAM = "no slowed stream reported"
"Texts of panels at sites that have none. Without tierd nobody knows of a slowed stream."


def none_of(expr: str, measured: str) -> str:
    """A number that is 0 if nothing matches, and absent if nothing measures it: absence is not good news."""
    return f"{expr} or 0 * count({measured})"


RATE, RANGE = "[$__rate_interval]", "[$__range]"
OF_FS = '{fs=~"$fs"}'
KEPT_FROM_ACTING = ("clamp_max(tierd_claim_refused{} + tierd_other_mover{} + "
                    "(tierd_nats_up{} == bool 0 or 0 * tierd_claim_refused{}), 1)")
STATE_BITS = ("tierd_dry_run", "tierd_observes_only", "tierd_learning", "tierd_draining", "tierd_held",
              KEPT_FROM_ACTING, "max without (source) (tierd_source_blind{})", "tierd_paused", "tierd_breaker_open")
"The later of two states is shown."


def tierd_state(width: int, matchers: str = OF_FS) -> Panel:
    """The state of tierd in words, one tile for each file system."""
    bits = (bit.replace("{}", matchers) if "{}" in bit else bit + matchers for bit in STATE_BITS)
    code = " + ".join(f"{2**place} * {bit}" if place else bit for place, bit in enumerate(bits))
    return stat(
        "tierd", "Whether tierd acts. Dry run: it plans and changes nothing. Learning: it has seen too little to "
        "compare streams with. Outside its window: [act] windows. Cannot act: another tierd or mover works there, or "
        "NATS does not answer. Blind: a source cannot be read. PAUSED: by an administrator, the pause file "
        "or the circuit breaker; see tierctl status.",
        Query(f"max by (fs) ({code})", "{{fs}}"), unit="none", steps=((None, GREEN),), width=width, empty=NO_TIERD,
        words=(
            Word(0, 0, "acts", GREEN), Word(1, 1, "dry run", YELLOW), Word(2, 3, "observes only", BLUE),
            Word(4, 7, "learning", BLUE), Word(8, 15, "draining", YELLOW), Word(16, 31, "outside its window", NEUTRAL),
            Word(32, 63, "cannot act", ORANGE), Word(64, 127, "BLIND", RED), Word(128, 255, "PAUSED", RED),
            Word(256, 511, "PAUSED: circuit breaker", RED)))


def over_interval(metric: str) -> str:
    """A series about a finding, over the interval of one point: a short finding is not between two points."""
    return f"max_over_time({metric}{OF_FS}{RATE})"


_SHARE = (f"min by (victim) (avg_over_time(tierd_victim_bytes_per_second{OF_FS}{RATE}) / "
          f"(tierd_victim_usual_bytes_per_second{OF_FS} > 0))")
SLOWED_STREAMS = stat(
    "Slowed streams", "Throughput of each stream that a neighbour slows, as a share of its throughput "
    "before: at the end of the time range, until its case is closed. 100% is as before.",
    Query(f"clamp_max({_SHARE}, 1)", "{{victim}}, of usual", instant=True), unit="percentunit", sizes=(15, 36),
    steps=((None, RED), (0.7, ORANGE), (0.85, YELLOW), (0.95, GREEN)), width=7, decimals=0, named=True, empty=NO_STREAM)
"""A sentence for each slowed stream: "ior_stream.1002, of usual" "65%"."""


def usual_throughput(matchers: str) -> Query:
    return Query(f"max by (victim) (max_over_time(tierd_victim_usual_bytes_per_second{matchers}{RATE}))",
                 "{{victim}} usual")


BUSIEST_JOBS = timeseries(
    "Busiest jobs: throughput", "Throughput of the busiest jobs. A dashed line is a slowed stream's throughput "
    "before its neighbour started. Marks: a stream is slowed, tierd sets a default layout, files move, verdict.",
    Query(f"topk(8, sum by (jobid) (fs_job:lustre_job_bytes:rate2m{OF_FS}))", "{{jobid}}"),
    usual_throughput(OF_FS), unit="Bps", by_name="jobid", overrides=(dashed("usual"),), width=17, height=12,
    empty="no job statistics: " + NO_SERVERS, links=(link_from_value("jobs", "This job", jobid="jobid"),))


STATE_WORDS = {
    "found": ("found", ORANGE), "planned": ("planned", BLUE), "acting": ("acting", BLUE), "judging": ("judging", BLUE),
    "kept": ("kept", GREEN), "undoing": ("undoing", "purple"), "undone": ("undone", "purple"),
    "closed": ("closed", NEUTRAL),
}
VERDICT_WORDS = {
    "helped": ("helped; kept", GREEN), "did-not-help": ("did not help; undone", ORANGE),
    "harmed-others": ("slowed other jobs; undone", RED), "taken-back": ("undone by hand", NEUTRAL),
    "cannot-tell": ("cannot be judged; kept", NEUTRAL), "": ("none yet", NEUTRAL),
}
REASON_WORDS = {
    "dry-run": ("dry run", YELLOW), "paused": ("PAUSED", RED), "pause-file": ("PAUSED: pause file", RED),
    "source": ("a source cannot be read", RED), "draining": ("draining", YELLOW), "advice": ("advice only", BLUE),
    "mode": ("mode allows no acts", BLUE), "not-approved": ("waits for tierctl apply", YELLOW),
    "reported-only": ("not in [act] on", BLUE), "claim-held": ("another tierd acts", YELLOW),
    "claim-lost": ("another tierd acts", YELLOW), "claim-unreadable": ("the claim cannot be read", RED),
    "other-mover": ("another mover works there", YELLOW), "no-broker": ("NATS does not answer", RED),
    "no-movers": ("no mover answers", RED), "no-changelog": ("no changelog reader", RED),
    "no-path": ("directory not known", YELLOW),
    "no-layout": ("layout cannot be read", RED), "no-pool": ("no such pool", RED),
    "pool-rotates": ("flash pool has rotating disks", RED), "no-room": ("no room on flash", ORANGE),
    "mdt-room": ("no room on an MDT", ORANGE), "opt-out-unreadable": ("opt-outs cannot be read", RED),
}
"""Of the other reasons the table shows the value of the label."""


def cases() -> Panel:
    """The cases of the time range: who slows whom, and what tierd does about it."""
    labels, begun = "(fs, id, victim, aggressor, state, verdict, reason)", f"tierd_case_begun_timestamp_seconds{OF_FS}"
    seen = f"max by {labels} (max_over_time(timestamp({begun})[$__range:{RATE[1:]}))"
    latest = f"topk by (fs, id) (1, {seen})"  # each state of a case is a series
    every = f"(1000 * max by {labels} (max_over_time({begun}{RANGE})) and {latest})"
    return table(
        "Cases", "Streams that a neighbour slowed in this time range, and what tierd did. State and "
        "verdict are the latest; closed: the finding has ended. Not done because: why tierd does not act; tierctl "
        "explain has the remedy.",
        Query(f"{every} and on (fs, id) {begun} or label_replace({every} unless on (fs, id) {begun} and on (fs) "
              f'tierd_cycles_total{OF_FS}, "state", "closed", "state", ".*") or on (fs, id) {every}'),
        unit="none", width=24, height=5, empty="no case reported in this time range", sort="Since",
        columns={"id": ("Finding", ""), "victim": ("Victim", ""), "aggressor": ("Aggressor", ""),
                 "Value": ("Since", "dateTimeAsLocal"), "state": ("State", ""), "verdict": ("Verdict", ""),
                 "reason": ("Not done because", "")},
        overrides=(coloured("State", STATE_WORDS), coloured("Verdict", VERDICT_WORDS),
                   coloured("Not done because", REASON_WORDS),
                   *sized({"Finding": 90, "Since": 190, "State": 110}),
                   *(column_link(job, "jobs", "This job", jobid=job) for job in ("Victim", "Aggressor"))))


def done_in_range() -> Panel:
    """What tierd found and did in the selected time range, as numbers."""
    def counted(expr: str, name: str) -> Query:
        return Query(f"round(sum(increase({expr}[$__range])))", name, instant=True)

    return stat(
        "In this time range", "Slowed streams that tierd found, default layouts set, files moved, "
        "acts that helped, acts undone.",
        counted('tierd_findings_total{fs=~"$fs", kind=~"noisy-neighbour|shared-bandwidth"}', "findings"),
        counted('tierd_default_layouts_total{fs=~"$fs", outcome="done"}', "layouts"),
        counted('tierd_moves_total{fs=~"$fs", outcome="done"}', "files"),
        counted('tierd_judgements_total{fs=~"$fs", verdict="helped"}', "helped"),
        counted(f"tierd_undone_total{OF_FS}", "undone"),
        unit="short", steps=((None, "text"),), width=7, named=True, decimals=0, empty=NO_TIERD)


STORY = (SLOWED_STREAMS, BUSIEST_JOBS, tierd_state(width=7), done_in_range(), cases())
"""What happens to streams, and what tierd does about it."""


def tierd_events() -> tuple[Json, ...]:
    """Mark acts of tierd on the time axis. Each gauge holds only the last event of its kind; counters have totals."""
    def event(name: str, label: str, colour: str, text: str) -> Json:
        last = of_cluster(f'tierd_last_event_timestamp_seconds{{event="{label}", fs=~"$fs"}}')
        return {
            "name": name, "datasource": DATASOURCE, "enable": True, "hide": False, "iconColor": colour,
            "expr": f"({last} > 0) * 1000", "useValueForTime": True, "titleFormat": name, "textFormat": text,
            "tagKeys": "event", "step": "",
        }

    return (
        event("Finding", "slowdown", "orange", "a stream is slowed"),
        event("Default layout", "default-layout", "blue", "default layout of a directory set"),
        event("Moves", "moves-begun", "green", "files begin to move"),
        event("Verdict", "verdict", "super-light-green", "verdict on what was done"),
        event("Undo", "undo", "purple", "act undone"),
        event("Failure", "failure", "red", "act failed"),
        event("Dry run", "dry-run", "yellow", "act that a dry run left out"),
    )
