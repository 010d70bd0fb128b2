"""Quotas, of the master and of its slaves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Sample
from tests.exporter.naive.reader import Reader


def quotas(reader: Reader) -> Iterator[Sample]:
    types = {"usr": "user", "grp": "group", "prj": "project"}
    for path, file in reader.places("qmt/*/*/glb-*").items():
        resource, _, pool = path.split("/")[2].partition("-")
        what, unit = ("bytes", 1024) if resource == "dt" else ("files", 1)
        text = " ".join(file.read_text().split())
        for id_, hard, soft, granted, time in re.findall(
            r"- id: (\d+) limits: { hard: (\d+), soft: (\d+), granted: (\d+), time: (\d+) }", text
        ):
            labels = {"fs": reader.fs, "pool": "" if pool == "0x0" else pool, "type": types[path[-3:]], "id": id_}
            if int(hard):
                yield f"lustre_quota_hard_limit_{what}", labels, Decimal(int(hard) * unit)
            if int(soft):
                yield f"lustre_quota_soft_limit_{what}", labels, Decimal(int(soft) * unit)
            if any(map(int, (hard, soft, granted))):
                yield f"lustre_quota_granted_{what}", labels, Decimal(int(granted) * unit)
                if id_ != "0" and 0 < int(time) < 1 << 48:
                    yield "lustre_quota_grace_end_timestamp_seconds", {**labels, "resource": what}, Decimal(time)
    for path, file in reader.places("osd-*/*/quota_slave*/acct_*").items():
        _, device, folder, name = path.split("/")
        labels = reader.server(device)
        if (folder == "quota_slave_dt" and "MDT" in device) or not labels or reader.linked(path):
            continue
        text = " ".join(file.read_text().split())
        for id_, inodes, kilobytes in re.findall(r"- id: (\d+) usage: { inodes: (\d+), kbytes: (\d+) }", text):
            more = {**labels, "type": name.removeprefix("acct_"), "id": id_}
            yield "lustre_quota_used_files", more, Decimal(inodes)
            yield "lustre_quota_used_bytes", more, Decimal(int(kilobytes) * 1024)


def slaves(reader: Reader) -> Iterator[Sample]:
    for path, file in reader.places("osd-*/*/quota_slave*/info").items():
        labels = reader.server(path.split("/")[1])
        if not labels or reader.linked(path):
            continue
        lines = [line.split(":", 1) for line in file.read_text().splitlines()]
        found = {key: value.strip() for key, value in lines}
        labels["resource"] = {"dt": "bytes", "md": "files"}[found["type"]]
        yield "lustre_quota_slave_connected", labels, Decimal(found["conn to master"] == "setup")
        for type_ in ("user", "group", "project"):
            more = {**labels, "type": type_}
            enforced = type_[0] in found["quota enabled"]
            yield "lustre_quota_slave_enforced", more, Decimal(enforced)
            if enforced and f"{type_} uptodate" in found:
                copies = found[f"{type_} uptodate"]
                yield "lustre_quota_slave_up_to_date", more, Decimal("glb[1],slv[1]" in copies)
