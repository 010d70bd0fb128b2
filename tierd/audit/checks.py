"""Compares a node's settings with the values in the papers and in Lustre's manual. Pure: a node in, lines out.

A setting that differs is advice only if the node's own counters show that it matters; without such a sign it is a note.
Sources, by the names used in the lines:

* *Dell and Intel*: "Lustre on PowerFlex", with Lustre 2.10.8 on Omni-Path;
* *DDN 2022*: slides on the history of its IO500 results;
* *Lustre manual*: the Lustre Operations Manual, chapter "Lustre Monitoring", section "Lustre Jobstats".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from lustre.formats import brw_stats, fields, read_ahead_stats, rpc_stats, statahead_stats
from lustre.formats.histogram import Histogram
from lustre.parameters import parse_device
from tierd.advised import (
    CLIENT_DRIVER,
    DRIVER_TEXTS,
    GOOD_STATAHEAD_HITS,
    LOW_STATAHEAD_HITS,
    MIB,
    READ_AHEAD_BYTES,
    RPC_BYTES,
    RPCS_IN_FLIGHT,
    SERVER_DRIVER,
    STATAHEAD_BATCH,
    driver_command,
    driver_value,
    first_number,
)
from tierd.audit.node import Node, numbers_of
from tierd.text import binary_text, count_of, percent

POWERFLEX, DDN = "Dell and Intel, Lustre on PowerFlex", "DDN 2022"
FULL_SHARE = 0.5
"""Share of RPCs, or of target I/Os, with the largest size from which a larger size would be used."""
AT_LIMIT_SHARE = 0.25
"""Share of RPCs sent at the limit of RPCs in flight from which the limit delays them."""
BUDGET_SHARE = 0.05
"""How often the read-ahead limit was reached, per missed page, from which it is the cause of misses."""
JUMPING_SHARE = 0.5
LOW_HITS = 0.5
"""Share of pages that were read ahead below which reads are not sequential."""
FEW_EVENTS = 100
"""Fewer events than this show nothing."""
STRIDES = (2, 14)
"""Release that reads ahead for strides that are not aligned to pages."""
BATCHED = (2, 16)
"""Release with batched statahead."""
PARALLEL_LOOKUP = (4, 7)
"""Kernel that looks names up in parallel in one directory."""


class State(StrEnum):
    """What a line means."""

    ADVICE = "advice"
    """The setting differs, and the node's counters show that it matters."""
    NOTE = "note"
    """The setting differs, and no counter shows that it matters."""
    OK = "ok"
    UNKNOWN = "unknown"
    """The setting, or what decides about it, cannot be read."""


@dataclass(frozen=True, slots=True)
class Line:
    """One setting: what it is, what the source says, why, what to expect, and the command."""

    check: str
    subject: str
    """File system, or node."""
    setting: str
    """Name and present value."""
    source: str
    """What the source says, and which source it is."""
    state: State
    why: str
    """Meaning of the setting, and what the counters show."""
    expect: str = ""
    command: str = ""


Check = Callable[[Node], Iterator[Line]]


def audit(node: Node) -> tuple[Line, ...]:
    """All lines for a node, in the order of :data:`CHECKS`."""
    return tuple(line for check in CHECKS for line in check(node))


def by_filesystem(texts: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Texts of a parameter by file system and device."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for device, text in sorted(texts.items()):
        found[parse_device(device).fsname][device] = text
    return dict(found)


def filesystems(node: Node, name: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Each file system with the values of a parameter by device. Devices without a number are left out."""
    numbers = node.numbers(name)
    for fsname, texts in by_filesystem(node.texts(name)).items():
        if values := {device: numbers[device] for device in texts if device in numbers}:
            yield fsname, values


def spread(values: Mapping[str, int], unit: str = "") -> str:
    """The values of a parameter, and on how many devices each is set.

    >>> spread({"a": 8, "b": 8}), spread({"a": 8, "b": 16, "c": 8}, " MiB")
    ('8', '8 MiB on 2 devices, 16 MiB on 1 device')
    """
    counts = sorted(Counter(values.values()).items())
    if len(counts) == 1:
        return f"{counts[0][0]}{unit}"
    return ", ".join(f"{value}{unit} on {count_of(count, 'device')}" for value, count in counts)


def full_share(tables: Iterable[tuple[Histogram | None, int]]) -> float | None:
    """Share of the events of some tables that are at or above the limit of each; None for too few events."""
    rows = [(upper >= limit, sum(column[row] for column in table.columns))
            for table, limit in tables if table is not None for row, upper in enumerate(table.uppers)]
    return share_of(sum(count for reached, count in rows if reached), sum(count for _, count in rows))


def share_of(part: int, whole: int) -> float | None:
    return part / whole if whole >= FEW_EVENTS else None


def unlike(line: Callable[..., Line], why: str, expect: str, command: str, *, matters: bool) -> Line:
    """The line of a setting that differs."""
    return line(State.ADVICE if matters else State.NOTE, why, expect, command)


def client_rpc_size(node: Node) -> Iterator[Line]:
    """``max_pages_per_rpc`` against what the servers accept."""
    for fsname, pages in filesystems(node, "osc.max_pages_per_rpc"):
        accepted = [size for device in pages if (size := accepted_bytes(node.texts("osc.import").get(device)))]
        full = full_share((rpc_stats.parse(text.encode() + b"\n").pages_per_rpc, pages[device])
                          for device, text in node.texts("osc.rpc_stats").items() if device in pages)
        sizes = "Too few RPCs since the mount to say how many are full" if full is None else (
            f"{percent(full)} of the RPCs since the mount have the largest size")
        least, largest = min(pages.values()) * node.page_bytes, max(accepted, default=0)
        say = partial(Line, "client-rpc-size", fsname, f"osc.{fsname}-*.max_pages_per_rpc = {spread(pages)}",
                      f"4096 pages ({POWERFLEX})")
        if not largest:
            yield say(State.UNKNOWN, f"Each RPC carries at most {binary_text(least)}. No connection shows what "
                                     f"the servers accept. {sizes}.")
        elif least < largest:
            yield unlike(
                say, f"Each RPC carries at most {binary_text(least)}; the servers accept {binary_text(largest)}. "
                f"{sizes}.", "Fewer and larger RPCs for streams. Small files gain nothing.",
                f"lctl set_param -P osc.{fsname}-*.max_pages_per_rpc={largest // node.page_bytes}",
                matters=(full or 0) >= FULL_SHARE)
        else:
            yield say(State.OK, f"Each RPC carries {binary_text(least)}, the maximum that the servers accept. "
                                f"{sizes}.")


def accepted_bytes(text: str | None) -> int:
    """The largest RPC that a server accepts, from the client's ``import``; 0 if unknown."""
    return fields.number(fields.parse(text.encode() + b"\n").values.get(b"max_brw_size")) or 0 if text else 0


def client_rpcs_in_flight(node: Node) -> Iterator[Line]:
    """``max_rpcs_in_flight``, and how often it is reached."""
    for fsname, limits in filesystems(node, "osc.max_rpcs_in_flight"):
        reached = full_share((rpc_stats.parse(text.encode() + b"\n").rpcs_in_flight, limits[device])
                             for device, text in node.texts("osc.rpc_stats").items() if device in limits)
        say = partial(Line, "client-rpcs-in-flight", fsname, f"osc.{fsname}-*.max_rpcs_in_flight = {spread(limits)}",
                      f"{RPCS_IN_FLIGHT} ({POWERFLEX})")
        how_often = "Too few RPCs since the mount to say how often it is reached." if reached is None else (
            f"{percent(reached)} of the RPCs since the mount were sent at the limit.")
        if min(limits.values()) >= RPCS_IN_FLIGHT:
            yield say(State.OK, how_often)
            continue
        yield unlike(
            say, f"More RPCs to one target wait in the client. {how_often}",
            "More throughput where targets have idle time; a longer queue for all where the disks are the bottleneck.",
            f"lctl set_param -P osc.{fsname}-*.max_rpcs_in_flight={RPCS_IN_FLIGHT}",
            matters=(reached or 0) >= AT_LIMIT_SHARE)


def read_ahead_budget(node: Node) -> Iterator[Line]:
    """``max_read_ahead_mb``, and how often read-ahead had to stop for it."""
    for fsname, limits in filesystems(node, "llite.max_read_ahead_mb"):
        counts = [read_ahead_stats.parse(text.encode() + b"\n")
                  for device, text in node.texts("llite.read_ahead_stats").items() if device in limits]
        stopped = sum(each.count(b"hit_max_readahead_issue") for each in counts)
        misses = sum(each.count(b"misses") for each in counts)
        wanted = min(READ_AHEAD_BYTES, node.memory_bytes // 2 if node.memory_bytes else READ_AHEAD_BYTES) // MIB
        why = (f"Pages that all processes may have read ahead. The limit stopped read-ahead {stopped} times; "
               f"{misses} pages were missed.")
        say = partial(Line, "read-ahead-budget", fsname, f"llite.{fsname}-*.max_read_ahead_mb = {spread(limits)}",
                      f"1024 ({POWERFLEX}); Lustre allows half of the memory")
        if min(limits.values()) >= wanted:
            yield say(State.OK, why)
            continue
        yield unlike(say, why, "Several streams on one client keep their windows. The pages take memory from "
                     "applications.", f"lctl set_param -P llite.{fsname}-*.max_read_ahead_mb={wanted}",
                     matters=misses >= FEW_EVENTS and stopped / misses >= BUDGET_SHARE)


def strided_reads(node: Node) -> Iterator[Line]:
    """Reads that are not sequential, with a release that cannot read ahead for them."""
    for fsname, texts in by_filesystem(node.texts("llite.read_ahead_stats")).items():
        counts = [read_ahead_stats.parse(text.encode() + b"\n") for text in texts.values()]
        hits, misses, jumps = (sum(each.count(name) for each in counts)
                               for name in (b"hits", b"misses", b"readpage_not_consecutive"))
        read = hits + misses
        if read < FEW_EVENTS or hits / read >= LOW_HITS or not misses or jumps / misses < JUMPING_SHARE:
            continue
        say = partial(Line, "strided-reads", fsname, f"Lustre {node.release or 'of unknown release'}",
                      f"2.14 or newer ({DDN}: hits of IOR's hard read 9% before, 88% after)")
        why = f"{percent(hits / read)} of {read} pages were read ahead; most misses follow a jump."
        if not node.version:
            yield say(State.UNKNOWN, why)
        elif node.version < STRIDES:
            yield say(State.ADVICE, why, "Lustre reads ahead for a fixed stride, even if it is not aligned to "
                      "pages. It cannot predict random reads.", "upgrade the client")
        else:
            yield say(State.OK, f"{why} This release reads ahead for strides; other jumps are random reads.")


def statahead(node: Node) -> Iterator[Line]:
    """``statahead_max``, and batched statahead where it would help."""
    for fsname, limits in filesystems(node, "llite.statahead_max"):
        hits = statahead_hits([text for device, text in node.texts("llite.statahead_stats").items()
                               if device in limits])
        known = "" if hits is None else f" {percent(hits)} of the entries that statahead fetched were used."
        say = partial(Line, "statahead", fsname, f"llite.{fsname}-*.statahead_max = {spread(limits)}",
                      f"on, with batched RPCs ({DDN}: getattr of a million files 10.1 s without, 5.4 s with batches)")
        if not min(limits.values()):
            yield say(State.ADVICE,
                      f"Statahead is off: ls -l and find ask for one file at a time.{old_kernel(node)}",
                      "ls -l and find wait for fewer round trips.",
                      f"lctl set_param -P llite.{fsname}-*.statahead_max=128")
            continue
        batches = {device: value for device, value in node.numbers("llite.statahead_batch_max").items()
                   if device in limits}
        if not batches:
            release = f"Lustre {node.release}" if node.release else "This release"
            yield say(State.NOTE if node.version and node.version < BATCHED else State.UNKNOWN,
                      f"{release} shows no statahead_batch_max; it came with 2.16.{known}{old_kernel(node)}")
        elif min(batches.values()) > 1:
            yield say(State.OK, f"statahead_batch_max is {spread(batches)}.{known}")
        elif hits is not None and hits < LOW_STATAHEAD_HITS:
            yield say(State.OK, f"Batches are off. They would not help here.{known}")
        else:
            yield unlike(
                say, f"Batches are off: each file costs an RPC.{known}", "ls -l and find take about half the time.",
                f"lctl set_param -P llite.{fsname}-*.statahead_batch_max={STATAHEAD_BATCH}",
                matters=(hits or 0) >= GOOD_STATAHEAD_HITS)


def statahead_hits(texts: list[str]) -> float | None:
    """Share of hits among the entries fetched; None if the release counts none, or too few."""
    counts = [statahead_stats.parse(text.encode() + b"\n") for text in texts]
    hits, misses = (sum(getattr(each, name) or 0 for each in counts) for name in ("hit_total", "miss_total"))
    return share_of(hits, hits + misses)


def old_kernel(node: Node) -> str:
    """A sentence about a kernel without parallel lookups; "" for a newer or unknown one."""
    kernel = numbers_of(node.kernel)
    if not kernel or kernel >= PARALLEL_LOOKUP:
        return ""
    return (f" Kernel {node.kernel} looks names up one at a time in a directory (parallel since 4.7, {DDN}), so "
            "only statahead saves round trips.")


def server_rpc_size(node: Node) -> Iterator[Line]:
    """``brw_size`` of the node's OSTs, against the sizes that they get."""
    for fsname, sizes in filesystems(node, "obdfilter.brw_size"):
        full = full_share(
            (brw_stats.parse(text.encode() + b"\n").named(b"pages per bulk r/w"),
             sizes[device] * MIB // node.page_bytes)
            for kind in ("osd-ldiskfs", "osd-zfs") for device, text in node.texts(f"{kind}.brw_stats").items()
            if device in sizes)
        say = partial(Line, "server-rpc-size", fsname, f"obdfilter.{fsname}-*.brw_size = {spread(sizes, ' MiB')}",
                      f"16 MiB ({POWERFLEX})")
        why = "Largest RPC that clients may send. " + (
            "Too few have come since the start to say how many have this size." if full is None else
            f"{percent(full)} of the RPCs since the start have this size.")
        if min(sizes.values()) >= RPC_BYTES // MIB:
            yield say(State.OK, why)
            continue
        yield unlike(
            say, why, "Larger I/Os on disks for streams. Clients use it after max_pages_per_rpc is raised, and a new "
            "connection.", f"lctl set_param -P obdfilter.{fsname}-*.brw_size=16", matters=(full or 0) >= FULL_SHARE)


def fabric_driver(node: Node) -> Iterator[Line]:
    """Parameters of the Omni-Path driver."""
    if not node.driver:
        return
    wanted = SERVER_DRIVER if node.server else CLIENT_DRIVER
    role = "servers" if node.server else "clients"
    for name, value in wanted.items():
        text = node.driver.get(name)
        shown = text if text is not None else "not in this driver"
        say = partial(Line, "omni-path", "this node", f"hfi1 {name} = {shown}",
                      f"{driver_value(name, value)} on {role} ({POWERFLEX})")
        present = first_number(text)
        why = DRIVER_TEXTS[name]
        if text is None or present is None:
            yield say(State.UNKNOWN, why)
        elif present == value:
            yield say(State.OK, why)
        else:
            yield say(State.NOTE, why, "Measured with one file system only: compare before and after.",
                      driver_command(name, value))


def job_ids(node: Node) -> Iterator[Line]:
    """``jobid_var``: without it no server knows jobs."""
    if not node.texts("llite.max_read_ahead_mb"):
        return
    say = partial(Line, "job-ids", "this node", f"jobid_var = {node.jobid_var or 'unknown'}",
                  "the scheduler's variable, or procname_uid (Lustre manual)")
    if not node.jobid_var:
        yield say(State.UNKNOWN, "Servers count operations by the job id that clients send.")
    elif node.jobid_var == "disable":
        yield say(State.ADVICE, "This client sends no job id: its load is invisible in job statistics.",
                  "tierd and the exporter see the jobs of this client.",
                  "lctl set_param -P jobid_var=SLURM_JOB_ID jobid_name=%j, or jobid_var=procname_uid")
    else:
        yield say(State.OK, "Servers count operations by the job id that clients send.")


CHECKS: tuple[Check, ...] = (
    client_rpc_size, client_rpcs_in_flight, read_ahead_budget, strided_reads, statahead, server_rpc_size,
    fabric_driver, job_ids,
)
