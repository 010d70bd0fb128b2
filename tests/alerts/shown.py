"""What an administrator sees on the node when an alert fires: output of the commands in its runbook.

The commands read the parameter files and the metrics of the simulated site. A runbook names them: ``RUNBOOKS=rewrite``
writes their output below each.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.alerts.site import EXPORTER, MINUTE, TIERD, Site

PLACES = ("proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre", "sys/kernel/debug/lnet")
MAX_LINES = 8
HEADING = "On a simulated site:\n\n"


def output(site: Site, command: str, only: str = "") -> str:
    """The output of a command, as a shell on the node prints it; of long output the lines that match ``only``."""
    shown, _, filtered = command.partition(" | grep -E ")
    program, *words = shlex.split(shown)
    if program == "curl":
        instance = EXPORTER if words[-1].endswith("9169/metrics") else TIERD
        lines = list(metric_lines(site, instance))
    elif program == "promtool":
        lines = list(query_lines(site, words))
    elif program == "cat":
        lines = (site.root / words[0].lstrip("/")).read_text().splitlines()
    else:
        assert (program, words[0]) == ("lctl", "get_param"), command
        lines = [line for pattern in words[1:] for line in parameter(site.root, pattern, only)]
        only = ""
    wanted = shlex.split(filtered)[0] if filtered else only
    found = [line.rstrip() for line in lines if re.search(wanted, line)]
    assert found, command
    more = [f"... ({len(found) - MAX_LINES} more lines)"] if len(found) > MAX_LINES else []
    return "\n".join([f"# {command}", *found[:MAX_LINES], *more])


def parameter(root: Path, pattern: str, only: str) -> Iterator[str]:
    """``lctl get_param``: one line for a value of one line, else the name and the lines below it."""
    for place in PLACES:
        for file in sorted((root / place).glob(pattern.replace(".", "/"))):
            name = str(file.relative_to(root / place)).replace("/", ".")
            lines = file.read_text().rstrip("\n").split("\n")
            if len(lines) == 1:
                yield from [f"{name}={lines[0]}"] if re.search(only, f"{name}={lines[0]}") else []
            elif kept := [line for line in lines if re.search(only, line)]:
                yield f"{name}="
                yield from kept


def metric_lines(site: Site, instance: tuple[str, str]) -> Iterator[str]:
    """The last page of an exporter, without what Prometheus adds."""
    own = f'job="{instance[0]}",instance="{instance[1]}"'
    for series, values in sorted(site.series.items()):
        if own in series and values[-1] is not None and not series.startswith(("up{", "scrape_")):
            bare = series.replace(own, "").replace(",}", "}").replace("{}", "")
            value = values[-1] + (site.begin if "timestamp_seconds{" in bare else 0.0)
            yield f"{bare} {value:.{10 if value > 1e9 else 4}g}"


QUERY = re.compile(r"(?P<name>\w+)\{(?P<label>\w+)=~\"(?P<wanted>[^\"]*)\"\}(?: (?P<comparison>==|>) (?P<limit>\d+))?")


def query_lines(site: Site, words: list[str]) -> Iterator[str]:
    """``promtool query instant URL QUERY`` at the last scrape; the query selects series and may compare them."""
    assert words[:2] == ["query", "instant"], words
    asked = QUERY.fullmatch(words[3])
    assert asked is not None, words[3]
    for series, values in sorted(site.series.items()):
        name, _, rest = series.partition("{")
        labels = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        value = values[-1]
        if value is None or name != asked["name"] or not re.fullmatch(asked["wanted"], labels.get(asked["label"], "")):
            continue
        limit = float(asked["limit"] or 0)
        if {"==": value == limit, ">": value > limit, None: True}[asked["comparison"]]:
            shown = ", ".join(f'{label}="{labels[label]}"' for label in sorted(labels))
            yield f"{name}{{{shown}}} => {value:.4g} @[{site.begin + MINUTE * site.minutes:.0f}]"


def without_numbers(text: str) -> str:
    """Output of which the numbers do not matter: the simulator may be tuned.

    >>> without_numbers('x{le="0.032"} 1.5e+09') == without_numbers('x{le="0.064"} 7')
    True
    """
    return re.sub(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", "0", text)


def in_page(page: str) -> str:
    """The output that a runbook shows; empty without any."""
    found = re.search(re.escape(HEADING) + r"((?:    .*\n|\n(?=    ))+)", page)
    return re.sub(r"^    ", "", found[1], flags=re.MULTILINE).rstrip("\n") if found else ""


def commands_in(page: str) -> list[str]:
    """The commands whose output a runbook shows."""
    return re.findall(r"^# (.*)$", in_page(page), re.MULTILINE)


def with_output(page: str, text: str) -> str:
    """The runbook with this output at the end of its diagnosis.

    >>> page = "# A\\n\\n## Diagnosis\\n\\n    cat x\\n\\n## Mitigation\\n\\nMend it.\\n"
    >>> in_page(with_output(page, "# cat x\\n1"))
    '# cat x\\n1'
    >>> with_output(with_output(page, "# cat x\\n1"), "# cat x\\n2") == with_output(page, "# cat x\\n2")
    True
    """
    before, heading, after = page.partition("\n## Mitigation")
    before = before.partition("\n" + HEADING)[0]
    indented = "".join(f"    {line}\n" if line else "\n" for line in text.split("\n"))
    return f"{before.rstrip(chr(10))}\n\n{HEADING}{indented}{heading}{after}"
