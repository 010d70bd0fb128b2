"""Changelogs of metadata targets and their users: ``mdd.*.changelog_users``.

The target keeps a record until every registered user has cleared it. A user that stops clearing fills the target.
"""

from __future__ import annotations

from exporter.collector import Collector, stateless
from exporter.exposition import Gauge, MetricsPage, escape
from exporter.families import FamilyMaker
from exporter.node import Node
from lustre.formats import changelog_users

USERS = FamilyMaker("lustre_changelog", ("fs", "target"), "mdd.*.changelog_users")
RECORDS = USERS.counter("records", "Records written to the changelog of the metadata target.")
BEHIND = USERS.gauge(
    "user_behind_records",
    "Changelog records that the user has not cleared yet. The target keeps all records that any user has not cleared.",
    "user")
IDLE = USERS.gauge("user_idle_seconds", "Time since the changelog user last cleared records.", "user", versions="2.12+")
MASK = Gauge(
    "lustre_changelog_mask_info",
    "Always 1, labelled with the types of records written to the changelog, joined by commas.",
    (*USERS.labels, "mask"), "mdd.*.changelog_current_mask, mdd.*.changelog_mask")


def _collect(node: Node, page: MetricsPage) -> None:
    for name, labels in node.labelled_targets("mdd"):
        if (data := node.read("mdd", name, "changelog_users")) is not None:
            parsed = changelog_users.parse(data)
            node.skipped("mdd", "changelog_users", _put(page, labels, parsed))
            current = node.read("mdd", name, "changelog_current_mask")
            former = node.read("mdd", name, "changelog_mask") if current is None else None
            if (mask := changelog_users.recorded(parsed, former, current)) is not None:
                page.sample(MASK, b'%b,mask="%b"' % (labels, escape(b",".join(sorted(mask)))), 1)


def _put(page: MetricsPage, labels: bytes, parsed: changelog_users.ChangelogUsers) -> int:
    skipped = parsed.skipped
    page.sample(RECORDS, labels, parsed.current_index)
    users = {user.id: user for user in reversed(parsed.users)}
    skipped += len(parsed.users) - len(users)
    for user in reversed(users.values()):
        more = b'%b,user="%b"' % (labels, escape(user.id))
        page.sample(IDLE, more, user.idle_seconds)
        if parsed.current_index is not None:
            behind = parsed.current_index - user.index
            page.sample(BEHIND, more, behind if behind >= 0 else None)
            skipped += behind < 0
    return skipped


COLLECTOR = Collector(
    "changelogs", "changelogs, and how far their users are behind", (RECORDS, BEHIND, IDLE, MASK), stateless(_collect))
