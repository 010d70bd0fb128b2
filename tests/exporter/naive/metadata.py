"""Metadata targets: room, renames, changelogs, HSM."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Labels, Sample, buckets
from tests.exporter.naive.reader import Reader

LOD = (
    ("numobd", "osts", 1),
    ("activeobd", "active_osts", 1),
    ("mdt_numobd", "mdts", 1),
    ("mdt_activeobd", "active_mdts", 1),
    ("stripesize", "stripe_size_bytes", 1),
    ("stripecount", "stripes", 1),
    ("qos_threshold_rr", "qos_threshold_ratio", 100),
    ("qos_prio_free", "qos_free_weight_ratio", 100),
)


def metadata(reader: Reader) -> Iterator[Sample]:
    for parameter, name, factor in (("kbytestotal", "size_bytes", 1024), ("kbytesfree", "free_bytes", 1024),
                                    ("kbytesavail", "avail_bytes", 1024), ("filestotal", "files", 1),
                                    ("filesfree", "files_free", 1)):  # fmt: skip
        for path, file in reader.places(f"osd-*/*-MDT*/{parameter}").items():
            labels = reader.server(path.split("/")[1])
            yield f"lustre_mdt_{name}", labels, Decimal(int(file.read_text()) * factor)
    for parameter in ("dirty", "granted", "pending"):
        yield from reader.numbers("mdt", f"tot_{parameter}", f"lustre_mdt_{parameter}_bytes", reader.server)
    for device, text in reader.files("mdt", "rename_stats"):
        yield from renames(reader.server(device), text)
    yield from changelogs(reader)
    yield from hsm(reader)
    for parameter, name, divisor in LOD:
        for path, file in reader.places(f"lod/*/{parameter}").items():
            labels = {"fs": reader.fs, "target": path.split("/")[1].split("-")[1]}
            yield f"lustre_lod_{name}", labels, Decimal(file.read_text().strip().rstrip("%")) / divisor


def renames(labels: Labels, text: str) -> Iterator[Sample]:
    directory, rows = "", defaultdict(list)
    for line in text.splitlines():
        words = line.replace(",", "").split()
        if words[0] == "-":
            directory = words[1].rstrip(":")
        elif match := re.fullmatch(r"(\d+)(bytes|KB|MB):", words[0]):
            bound = int(match[1]) * {"bytes": 1, "KB": 1 << 10, "MB": 1 << 20}[match[2]]
            rows[directory].append((bound, int(words[3])))
    names = {"same_dir": "same", "crossdir_src": "source", "crossdir_tgt": "target"}
    for directory, column in rows.items():
        while column[0][0] > 4096:
            column.insert(0, (column[0][0] // 2, 0))
        more = {**labels, "directory": names[directory]}
        yield from buckets("lustre_mdt_rename_directory_size_bytes", more, column)


def changelogs(reader: Reader) -> Iterator[Sample]:
    for device, text in reader.files("mdd", "changelog_users"):
        labels = reader.server(device)
        first, _, *users = text.splitlines()
        last = int(first.split(":")[1])
        yield "lustre_changelog_records_total", labels, Decimal(last)
        for line in users:
            name, index, *idle = line.split()
            more = {**labels, "user": name}
            yield "lustre_changelog_user_behind_records", more, Decimal(last - int(index))
            if idle and idle[0].startswith("("):
                yield "lustre_changelog_user_idle_seconds", more, Decimal(idle[0].strip("()"))
    masks = dict(reader.files("mdd", "changelog_mask")) | dict(reader.files("mdd", "changelog_current_mask"))
    for device, text in masks.items():
        if text.split() not in ([], ["MARK"]):
            yield "lustre_changelog_mask_info", {**reader.server(device), "mask": ",".join(sorted(text.split()))}, \
                Decimal(1)


def hsm(reader: Reader) -> Iterator[Sample]:
    for device, text in reader.files("mdt", "hsm_control"):
        yield "lustre_hsm_coordinator", {**reader.server(device), "state": text.strip()}, Decimal(1)
    for operation in ("archive", "restore", "remove"):
        for device, text in reader.files("mdt", f"hsm/{operation}_count"):
            yield "lustre_hsm_requests", {**reader.server(device), "operation": operation}, Decimal(text)
    for device, text in reader.files("mdt", "hsm/max_requests"):
        yield "lustre_hsm_max_requests", reader.server(device), Decimal(text)
    for device, text in reader.files("mdt", "hsm/agents"):
        labels = reader.server(device)
        yield "lustre_hsm_agents", labels, Decimal(len(text.splitlines()))
        for word, name, more in (
            ("current", "agent_requests", {}),
            ("ok", "agent_requests_done_total", {"result": "ok"}),
            ("errors", "agent_requests_done_total", {"result": "error"}),
        ):
            numbers = [int(number) for number in re.findall(rf"\b{word}:(\d+)", text)]
            if numbers or word == "current":
                yield f"lustre_hsm_{name}", {**labels, **more}, Decimal(sum(numbers))
