"""Services of a server: requests, queues, threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Labels, Sample, counters
from tests.exporter.naive.reader import Reader


def services(reader: Reader) -> Iterator[Sample]:
    for folder in ("ost/OSS/*", "mds/MDS/*", "mgs/MGS/mgs", "ldlm/services/*"):
        for path, file in reader.places(f"{folder}/*").items():
            labels, parameter = {"service": path.split("/")[2]}, path.split("/")[3]
            if parameter == "stats":
                yield from service(labels, file.read_text())
            elif parameter == "nrs_policies":
                yield from queues(labels, file.read_text())
            elif parameter in {"threads_min", "threads_max", "threads_started"}:
                yield f"lustre_service_{parameter}", labels, Decimal(file.read_text())


def service(labels: Labels, text: str) -> Iterator[Sample]:
    prefix = "lustre_service"
    for name, samples, unit, total in counters(text):
        if name == "req_waittime":
            yield f"{prefix}_requests_total", labels, Decimal(samples)
            yield f"{prefix}_request_wait_seconds_total", labels, Decimal(total).scaleb(-6)
        elif name == "req_qdepth":
            yield f"{prefix}_queue_depth_at_start_total", labels, Decimal(total)
        elif name == "req_active":
            yield f"{prefix}_active_at_start_total", labels, Decimal(total)
        elif name not in {"req_timeout", "reqbuf_avail", "reqbufs_avail"}:
            more = {**labels, "operation": name}
            yield f"{prefix}_operations_total", more, Decimal(samples)
            if unit.startswith("usec"):
                yield f"{prefix}_operation_seconds_total", more, Decimal(total).scaleb(-6)


def queues(labels: Labels, text: str) -> Iterator[Sample]:
    for section in re.split(r"\n(?=\w+_requests:)", text):
        match = re.match(r"\n?(regular|high)(?:_priority)?_requests:", section)
        if match is None:
            continue
        for word in ("queued", "active"):
            number = sum(int(found) for found in re.findall(rf"{word}: (\d+)", section))
            yield f"lustre_service_{word}_requests", {**labels, "priority": match[1]}, Decimal(number)
