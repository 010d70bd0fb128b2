"""A trouble for each alert: what happens on the simulated site so that it fires."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.devices.hdd import HddSettings
from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.jobs.large_files import RandomWriter, StreamingReader
from simulator.settings import ClusterSettings, recorded_test_bed
from tests.alerts.site import EXPORTER, TIERD, Site
from tests.tierd.integrations.powerflex_gateway import SYSTEM, AnsweringGateway, answering
from tests.tierd.simulated import COVERING, NOISE, STREAM
from tierd.act.claim import FilesystemClaim
from tierd.act.dispatch import Dispatch, DispatchCounts, DispatchState, RemoteMover, RemoteStandby
from tierd.act.movers.moves import Halt, Move, MoveOutcome, never_halt
from tierd.acts import ActKind
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.model import Action
from tierd.refusal import Reason, Refusal
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.changelogs.tally_source import MdtProgress, Position, ReaderState, ReceivedTally, TallySource
from tierd.sense.freshness import SourceAge
from tierd.simulation.world import VirtualClock

HEALTHY_MINUTES, TROUBLE_MINUTES = 2, 2
NOBODY = 65534
Change = Callable[[Site], None]
ACTING = replace(Settings(), act=replace(Settings().act, dry_run=False))


@dataclass(frozen=True, slots=True)
class Trouble:
    """How an alert comes about."""

    alert: str
    begin: Change
    each: Change = lambda _: None
    """Done every minute of the trouble, before the scrape."""
    jobs: Sequence[Job] = ()
    minutes: int = TROUBLE_MINUTES
    healthy_minutes: int = HEALTHY_MINUTES
    site: dict[str, Any] = field(default_factory=dict)
    """Further arguments of :class:`Site`."""
    trends: tuple[str, ...] = ()
    """Gauges that go on changing."""
    instances: int = 1
    """So many sites have the trouble at once."""
    hours: float = 0.0
    """When the alert must fire at the latest; 0: by what its rules wait for."""
    step_minutes: int = 1
    """Time between two samples: promtool reads 10,000 at most, and a week has more minutes."""
    lines: str = ""
    """What the lines have in common that the runbook shows of a long output."""


def event(kind: str, *targets: str, **values: object) -> Change:
    """An event of the simulator, on each of these targets or without any."""
    def begin(site: Site) -> None:
        for of_target in [{"target": target} for target in targets] or [{}]:
            site.event(kind, **of_target, **values)

    return begin


def put(pattern: str, text: str) -> Change:
    return lambda site: site.edit(pattern, lambda _: text)


def sub(pattern: str, found: str, by: str) -> Change:
    """Replace a text in parameter files; it must be there."""
    def begin(site: Site) -> None:
        def change(text: str) -> str:
            changed, count = re.subn(found, by, text, flags=re.MULTILINE)
            assert count, (pattern, found, text)
            return changed

        site.edit(pattern, change)

    return begin


def growing(pattern: str, text: Callable[[int], str]) -> dict[str, Any]:
    """A parameter whose counters grow: its text by minutes of trouble."""
    minutes = [0]

    def each(site: Site) -> None:
        minutes[0] += 1

    return {"begin": lambda site: site.edit(pattern, lambda _: text(minutes[0])), "each": each}


def faster_mds(site: Site) -> None:
    """The job does 500 times as many metadata operations as the simulated MDS can."""
    def scaled(text: str) -> str:
        return re.sub(r"(samples: +)(\d+)", lambda found: f"{found[1]}{500 * int(found[2])}", text)

    site.edit("proc/fs/lustre/mdt/*/job_stats", scaled)


def unmounted(site: Site) -> None:
    """A target that its server no longer has, and no other server either."""
    for folder in ("proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre"):
        site.remove(f"{folder}/obdfilter/lustre-OST0003")
        site.remove(f"{folder}/osd-*/lustre-OST0003")


def filling(site: Site) -> None:
    """One percent a minute, from 15% free."""
    site.event("full", target="OST0003", free_percent=15.0 - (site.minutes - HEALTHY_MINUTES))


def failing_moves(site: Site) -> None:
    """Files to be moved to a pool that does not exist."""
    nowhere = Layout((Component(0, None, "none"),))
    for place in range(30):
        site.cluster.make_file(f"/proj/ingest/n{place}", 1 << 16)
    site.world.gate.submit([Action(ActKind.MIGRATE, nowhere, "", ("", "", ""), path=f"/proj/ingest/n{place}")
                            for place in range(30)], 1)


class HeldByAnother(FilesystemClaim):
    """The claim of this tierd, after another one has taken the file system."""

    def hold(self) -> Refusal | None:
        return Refusal(Reason.CLAIM_HELD, "another tierd moves files of this file system: host mgmt02")


def waiting_moves(site: Site) -> None:
    """Files to be moved, and limits that allow next to none."""
    files = [site.cluster.make_file(f"/proj/ingest/n{place}", 1 << 16).path for place in range(30)]
    site.world.gate.submit([Action(ActKind.MIGRATE, COVERING, "", ("", "", ""), path=path) for path in files], 1)


MOVER = RemoteMover("mover1", "mover1", "lease", 4, 0.0, results={"done": 1200}, copied_bytes=5 << 30)
STANDBY = RemoteStandby("tierd2", "tierd2", 0.0, behind_messages=0, copy_age_seconds=0.0)
CLUSTER = DispatchState(True, "", (MOVER,), (STANDBY,), {}, 0.0, 0, DispatchCounts(75, Counter(done=1200)))
"""A leader whose movers are at work, and have nothing to do."""


class ShownDispatch(Dispatch):
    """A dispatch that shows the state of movers that are not there."""

    shown = CLUSTER

    def state(self) -> DispatchState:
        return self.shown


def cluster(**changes: Any) -> Change:
    """Several nodes work on the file system, and something about them is wrong."""
    def change(site: Site) -> None:
        site.world.gate.dispatch = dispatch = ShownDispatch(NeverMoves())
        dispatch.shown = replace(CLUSTER, **changes)

    return change


class NeverMoves:
    """A mover that gets no moves."""

    def move(self, moves: Sequence[Move], halt: Halt = never_halt) -> Iterator[MoveOutcome]:
        raise NotImplementedError

    def examine(self, moves: Sequence[Move]) -> Iterator[MoveOutcome]:
        raise NotImplementedError


def moves_without_movers(site: Site) -> None:
    waiting_moves(site)
    cluster(movers=())(site)


def down(*which: tuple[str, str]) -> Change:
    return lambda site: site.down.update(which)


def bad_web_config(site: Site) -> None:
    site.web_config.path.write_text("tls_server_config: {cert_file: none.crt}\n")
    site.web_config.config()


def lost_source(site: Site) -> None:
    """An access log that gives nothing since the trouble began."""
    begun = site.cluster.epoch
    site.sources = lambda: [SourceAge("access-log", begun, 30.0, site.cluster.epoch)]


class Heartbeats:
    """An inbox with a tally of every MDT each time, except of those that are lost."""

    lost: ClassVar[set[str]] = set()

    def receive(self) -> Sequence[ReceivedTally]:
        return [ReceivedTally(Tally(mdt, 0, 0, 0, "reader1", 1, 0, False, True, 0.0, 0.0), None)
                for mdt in ("MDT0000", "MDT0001") if mdt not in self.lost]

    def confirm(self, done: Sequence[ReceivedTally]) -> None:
        pass

    def announce(self, positions: Mapping[str, Position]) -> None:
        pass

    def readers(self) -> Sequence[ReaderState]:
        return ()


class LiveTallies(TallySource):
    """Takes tallies whenever it is looked at."""

    @property
    def progress(self) -> Mapping[str, MdtProgress]:
        with suppress(OSError):
            list(self.batches())
        return super().progress


def tallies_of(cluster: Cluster) -> TallySource:
    Heartbeats.lost = set()
    return LiveTallies(Heartbeats(), {"MDT0000": 0, "MDT0001": 0}, VirtualClock(cluster), 30.0)


def gateway_of(site: Site) -> AnsweringGateway:
    assert isinstance(site.below.gateway, AnsweringGateway)
    return site.below.gateway


def rebuild(site: Site) -> None:
    gateway_of(site).rebuild(mib_per_second=800, pending_kib=300 << 20)


def lost_mdm(site: Site) -> None:
    cluster = {**SYSTEM["mdmCluster"], "clusterState": "ClusteredDegraded", "goodNodesNum": 2}
    gateway_of(site).known["System"] = [{**SYSTEM, "mdmCluster": cluster}]


def hanging_parameter(site: Site) -> None:
    """A parameter of a target whose read never ends."""
    file = site.root / "sys/fs/lustre/obdfilter/lustre-OST0003/degraded"

    def hang() -> None:
        file.unlink()
        os.mkfifo(file)

    site.edits.append(hang)


def closed_debugfs(site: Site) -> None:
    """Only root may list debugfs, and the exporter is not root."""
    site.scraped_as = NOBODY
    site.root.parent.chmod(0o755)
    site.edits.append(lambda: (site.root / "sys/kernel/debug").chmod(0))


def hung_service(site: Site) -> None:
    """Requests wait, and the threads do nothing any more."""
    site.cluster.stop(STREAM.job_id)
    sub("sys/kernel/debug/lustre/ost/OSS/ost_io/nrs_policies", r"queued: 0", "queued: 7")(site)


def real_disks() -> ClusterSettings:
    """Disks whose latency the servers see: the recorded ones are held back by a throttle above them."""
    bed = recorded_test_bed()
    return replace(bed, osts=tuple(replace(ost, device=HddSettings()) if place in bed.pools["hdd"] else ost
                                   for place, ost in enumerate(bed.osts)))


USELESS = replace(ACTING, verify=replace(ACTING.verify, min_gain=0.999999, judge_seconds=20.0))
SLOWLY = replace(ACTING, limits=replace(ACTING.limits, files_per_second=0.0001))
READERS = tuple(StreamingReader(job_id=f"ior_read.{3000 + n}", path=f"/proj/read/{n}.dat", file_bytes=256 << 20,
                                direct=True) for n in range(2))
BOTH_MOUNTS = (STREAM, replace(STREAM, job_id="ior_stream.2100", path="/proj/flow/other.dat", client=1))
FOUR_STREAMS = [replace(STREAM, job_id=f"ior_stream.{2000 + n}", path=f"/proj/flow/s{n}.dat") for n in range(4)]
SELDOM = {"cycle_seconds": 30.0}
"""Cycles of a tierd that has no jobs to judge: two for each scrape."""
TIERD_SITE = {"settings": ACTING, **SELDOM}
POWERFLEX_SITE = {**TIERD_SITE, "powerflex": lambda cluster: answering(VirtualClock(cluster))}
ASKING = replace(ACTING, act=replace(ACTING.act, mode=Mode.ASK))
DRY_SITE = {"settings": replace(Settings(), act=replace(Settings().act, dry_run=True)), "dry_run": True,
            "model": FluidCluster}

TROUBLES = (
    Trouble("LustreUnhealthy", put("sys/fs/lustre/health_check", "NOT HEALTHY\n")),
    Trouble("LustreTargetGone", unmounted, hours=0.2),
    Trouble("LustreTargetInactive", put("sys/fs/lustre/osp/lustre-OST0001-osc-MDT*/active", "0\n"), lines="=0$"),
    Trouble("LustreServersDisconnected",
            sub("sys/kernel/debug/lustre/osp/lustre-MDT0001-osp-MDT0000/import", "state: FULL", "state: DISCONN"),
            lines="state: DISCONN"),
    Trouble("LustreCheckFailed",
            sub("sys/kernel/debug/lustre/osd-ldiskfs/*/oi_scrub", "status: completed", "status: crashed"),
            lines="^status"),
    Trouble("LustreOstCreatesFail", put("sys/fs/lustre/osp/lustre-OST0001-osc-MDT*/prealloc_status", "-28\n"),
            lines="=-"),
    Trouble("LustreOstDegraded", event("degraded", "OST0003", rebuild_share=0.2), lines="=1$"),
    Trouble("LustreRecoveryStuck", event("recovery", "OST0003", seconds=36000.0),
            lines="RECOVERING|connected_clients|req_replay"),
    Trouble("LustreOstFillingUp", filling, each=filling, trends=("lustre_ost_avail_bytes",), lines="OST000[2-5]"),
    Trouble("LustreOstFull", event("full", "OST0003", free_percent=3.0), lines="OST000[2-5]"),
    Trouble("LustreOstImbalance", event("full", "OST0003", free_percent=20.0), lines="OST000[2-5]"),
    Trouble("LustreOstSlow", event("slow", "OST0003", factor=12.0), jobs=READERS, site={"hardware": real_disks}),
    Trouble("LustreMdtInodesLow", put("sys/fs/lustre/osd-ldiskfs/lustre-MDT0000/filesfree", "1000\n")),
    Trouble("LustreChangelogBehind", sub("sys/kernel/debug/lustre/mdd/lustre-MDT0000/changelog_users",
                                         r"^current_index: \d+", "current_index: 20000000"), lines="index|^cl"),
    Trouble("LustreChangelogUserIdle", sub(
        "sys/kernel/debug/lustre/mdd/lustre-MDT0000/changelog_users",
        r"(?s)^current_index: \d+(.*) \(\d+\)", r"current_index: 200000\1 (100000)"), lines="index|^cl"),
    Trouble("LustreServiceHung", hung_service, jobs=(STREAM,), lines="requests:|queued: [1-9]"),
    Trouble("LustreServiceSaturated", lambda site: (
        sub("sys/kernel/debug/lustre/ost/OSS/ost_io/nrs_policies", r"(queued|active): 0", r"\1: 60")(site),
        put("sys/fs/lustre/ost/OSS/ost_io/threads_started", "64\n")(site),
        put("sys/fs/lustre/ost/OSS/ost_io/threads_max", "64\n")(site))[0]),
    Trouble("LustreImportsNotFull", event("gone", "OST0003"), lines=" (target|state): "),
    Trouble("LustreTargetUnreachable", event("gone", "OST0003"), lines=" (target|state): "),
    Trouble("LustreEvictions", **growing("sys/fs/lustre/obdfilter/lustre-OST0000/eviction_count",
                                         lambda minutes: f"{3 * minutes}\n")),
    Trouble("LustreReadAheadCollapse", **growing(
        "sys/kernel/debug/lustre/llite/*/read_ahead_stats", lambda minutes: (
            "snapshot_time             1795000000.000000000 secs.nsecs\n"
            f"misses                    {90_000 * minutes} samples [pages]\n")), lines="hits|misses"),
    Trouble("LustreStataheadWaste", **growing(
        "sys/kernel/debug/lustre/llite/*/statahead_stats", lambda minutes: (
            f"statahead total: {minutes}\nstatahead wrong: 0\nagl total: 0\nlist_total: {minutes}\nfname_total: 0\n"
            f"hit_total: {15_000 * minutes}\nmiss_total: {45_000 * minutes}\n")), lines="hit_total|miss_total"),
    Trouble("LustreRpcSaturation",
            sub("sys/kernel/debug/lustre/osc/*/rpc_stats", r"^(write RPCs in flight:\s+)\d+", r"\g<1>8"),
            jobs=BOTH_MOUNTS, lines="RPCs in flight:"),
    Trouble("LustreLnetInterfaceDown", sub("sys/kernel/debug/lnet/nis", r"^(10\.0\.0\.1@o2ib\s+)up  ", r"\1down")),
    Trouble("LustreLnetErrors", **growing("sys/kernel/debug/lnet/stats", lambda minutes: (
        f"3 30 {600 * minutes} 1000 2000 0 2 30000000 40000000 0 4096\n"))),
    Trouble("LustrePoolRoomLow", event("full", "OST0002", "OST0003", "OST0004", "OST0005", free_percent=3.0)),
    Trouble("LustrePoolSpilling", put("proc/fs/lustre/lod/*/pool/flash/spill_is_active", "1\n")),
    Trouble("LustreMetadataStorm", faster_mds, jobs=(replace(NOISE, start_seconds=0.0),), site={"model": FluidCluster},
            lines="job_id|(mknod|unlink|open):"),
    Trouble("LustreSmallIoOnDisks", lambda _: None, jobs=(RandomWriter(processes_count=4),),
            healthy_minutes=1, site={"hardware": lambda: recorded_test_bed(hdd_ios_per_second=200),
                                     "model": FluidCluster}, lines="job_id|write"),
    Trouble("LustreNoisyNeighbour", lambda _: None, jobs=(STREAM, replace(NOISE, start_seconds=180.0)), site=DRY_SITE),
    Trouble("TierdDown", down(TIERD), site=TIERD_SITE),
    Trouble("TierdStalled", lambda site: setattr(site, "tierd_hangs", True), site=TIERD_SITE),
    Trouble("TierdMovesStalled", waiting_moves, site={"settings": SLOWLY, **SELDOM}),
    Trouble("TierdBreakerOpen", failing_moves, site=TIERD_SITE),
    Trouble("TierdPausedForLong", lambda site: site.world.gate.operating_state.pause("checking disks"),
            site=TIERD_SITE),
    Trouble("TierdPlanWaits", lambda _: None, jobs=(*FOUR_STREAMS, replace(NOISE, start_seconds=180.0)),
            site={"settings": ASKING, "model": FluidCluster}),
    Trouble("TierdNatsDown", cluster(connected=False, trouble="no server answers"), site=TIERD_SITE),
    Trouble("TierdMoverStopped", cluster(movers=(replace(MOVER, stopped="/d/1: its project was 7 and is 8"),)),
            site=TIERD_SITE),
    Trouble("TierdNoMovers", moves_without_movers, site={"settings": SLOWLY, **SELDOM}),
    Trouble("TierdJournalNotCopied", cluster(journal_lag=2000), site=TIERD_SITE),
    Trouble("TierdNoStandby", cluster(standbys=()), site=TIERD_SITE),
    Trouble("TierdStandbyBehind", cluster(standbys=(replace(STANDBY, behind_messages=4100, copy_age_seconds=900.0),)),
            site=TIERD_SITE),
    Trouble("TierdSecondMover", lambda _: None, site={**TIERD_SITE, "claim": lambda _: HeldByAnother()}),
    Trouble("TierdIneffective", event("slow", "OST0002", factor=1.45),  # half-way after the act, a disk fails
            jobs=(STREAM, replace(NOISE, start_seconds=40.0)), healthy_minutes=1, instances=3,
            site={"settings": USELESS, "model": FluidCluster}),
    Trouble("TierdNoRoom", event("full", "OST0000", "OST0001", free_percent=2.0),
            jobs=(STREAM, replace(NOISE, start_seconds=200.0)), site={"settings": ACTING, "model": FluidCluster}),
    Trouble("TierdDryRunForgotten", lambda _: None,
            jobs=(*FOUR_STREAMS, replace(NOISE, start_seconds=180.0)), site=DRY_SITE, hours=150.0, step_minutes=5),
    Trouble("TierdBlind", event("exporter_unreachable", seconds=36000.0), site=TIERD_SITE),
    Trouble("TierdSourceStale", lost_source, site=TIERD_SITE),
    Trouble("TierdWebConfigNotReloaded", bad_web_config, site={**TIERD_SITE, "with_web_config": True}),
    Trouble("TierdReaderMissing", lambda _: setattr(Heartbeats, "lost", {"MDT0001"}),
            site={**TIERD_SITE, "tallies": tallies_of}),
    Trouble("TierdPowerFlexRebuildLong", rebuild, site=POWERFLEX_SITE),
    Trouble("TierdPowerFlexUnreachable", lambda site: setattr(gateway_of(site), "silent", True),
            site=POWERFLEX_SITE),
    Trouble("TierdPowerFlexMdmDegraded", lost_mdm, site=POWERFLEX_SITE),
    Trouble("LustreExporterDown", down(EXPORTER)),
    Trouble("LustreMonitoringBlind", down(EXPORTER)),
    Trouble("LustreExporterCollectorFailing", hanging_parameter),
    Trouble("LustreExporterSlow", lambda site: setattr(site, "scrape_seconds", 9.0)),
    Trouble("LustreExporterCannotRead", closed_debugfs),
    Trouble("LustreExporterConfigNotReloaded", bad_web_config, site={"with_web_config": True}),
)
