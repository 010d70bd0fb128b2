r"""Rules of the token bucket filter (TBF) of a service: ``nrs_tbf_rule`` of ``ost.OSS.*`` and ``mds.MDS.*``.

The file has one block per priority and CPU partition (CPT), and one line per rule::

    regular_requests:
    CPT 0:
    tierd_1 jobid={dd.0} 20, ref 1
    default * 10000, ref 0
    high_priority_requests:
    CPT 0:
    default * 10000, ref 0

A rule has a name, a condition, its rate in requests a second for each class of requests on each CPT, and the number of
classes that use it now. A class is a job, a NID, or another value that the policy distinguishes. A condition may
contain spaces and braces.

>>> parse(b"regular_requests:\nCPT 1:\na jobid={x y} 20, ref 3\n").rows
(Rule(priority=b'regular', partition=1, rule_name=b'a', condition=b'jobid={x y}', rate=20, classes=3),)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lustre.formats import header
from lustre.formats.rows import Rows

SECTION = re.compile(rb"^(regular|high_priority)_requests:[ \t]*+\n", re.MULTILINE)
_PARTITION = re.compile(rb"^CPT (\d{1,10}+):[ \t]*+\n", re.MULTILINE)
_RULE = re.compile(rb"^(\S{1,64}+) (.*) (\d{1,20}+), ref (\d{1,10}+)[ \t]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of one priority on one CPT."""

    priority: bytes
    """``regular`` or ``high_priority``."""
    partition: int
    """Number of the CPT."""
    rule_name: bytes
    condition: bytes
    rate: int
    """Requests a second for each class."""
    classes: int
    """Number of classes that use the rule now."""


def parse(data: bytes) -> Rows[Rule]:
    """The rules of a service in the order printed, which is the order of evaluation."""
    rules: list[Rule] = []
    understood = 0
    for section, end in parts(SECTION, data, 0, len(data)):
        understood += 1
        for partition, end_of_partition in parts(_PARTITION, data, section.end(), end):
            found = [
                Rule(section[1], int(partition[1]), name, condition, int(rate), classes=int(classes))
                for name, condition, rate, classes in _RULE.findall(data, partition.end(), end_of_partition)
                if not header.is_beyond(rate)
            ]
            rules += found
            understood += 1 + len(found)
    return Rows(tuple(rules), header.skipped_lines(data, understood))


def parts(heading: re.Pattern[bytes], data: bytes, begin: int, end: int) -> Iterator[tuple[re.Match[bytes], int]]:
    """Headings in a part of a text, each with the end of what follows it."""
    headings = list(heading.finditer(data, begin, end))
    return zip(headings, [*[match.start() for match in headings[1:]], end], strict=False)
