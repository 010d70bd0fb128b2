"""Jobs, by target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Labels, Sample, buckets
from tests.exporter.naive.reader import Reader


def jobs(reader: Reader) -> Iterator[Sample]:
    for kind in ("obdfilter", "mdt"):
        for device, text in reader.files(kind, "job_stats"):
            labels = reader.server(device)
            assert labels is not None
            blocks = text.split("\n- job_id:")[1:]
            yield "lustre_jobs", labels, Decimal(len(blocks))
            yield "lustre_jobs_idle", labels, Decimal(0)
            for block in blocks:
                job, *lines = block.splitlines()
                name = re.sub(r"\\x(..)", lambda code: chr(int(code[1], 16)), job.strip().strip('"'))
                yield from of_job({**labels, "jobid": name}, lines)


def of_job(labels: Labels, lines: list[str]) -> Iterator[Sample]:
    for line in lines:
        match = re.match(r" +(\w+): +\{ samples: +(\d+), unit: +(\w+)(?:, min.*?, sum: +(\d+))?", line)
        if match is None or match[2] == "0":
            continue
        name, count, unit, total = match[1], Decimal(int(match[2])), match[3], Decimal(int(match[4] or 0))
        if unit == "bytes":
            yield f"lustre_job_{name}_total", labels, total
            more = {**labels, "direction": name.removesuffix("_bytes")}
            hist = re.search(r"hist: \{ (.*) \} \}", line)
            if hist:
                rows = [(_size(size), int(number)) for size, number in re.findall(r"(\w+): (\d+)", hist[1])]
                yield from buckets("lustre_job_io_size_bytes", more, rows)
                yield "lustre_job_io_size_bytes_sum", more, total
                yield "lustre_job_io_size_bytes_count", more, count
            if not any("usecs" in other for other in lines):  # up to 2.13
                yield "lustre_job_operations_total", {**labels, "operation": name.removesuffix("_bytes")}, count
        else:
            yield "lustre_job_operations_total", {**labels, "operation": name}, count
            if unit == "usecs":
                yield "lustre_job_operation_seconds_total", {**labels, "operation": name}, total.scaleb(-6)


def _size(text: str) -> int:
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * scale[text[-1]] if text[-1] in scale else int(text)
