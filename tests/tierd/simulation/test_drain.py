"""Scenarios of ``tierctl drain-target`` beside jobs."""

from collections.abc import Mapping

from simulator.cluster import Cluster
from simulator.scenarios import scenario
from simulator.scenarios.scenario import Scenario
from tierd.acts import Outcome as ActOutcome
from tierd.config.settings import Settings
from tierd.simulation.run import Outcome, orders_of, run


def lived(loaded: Scenario, policy: Settings | None) -> tuple[Cluster, Outcome]:
    cluster = loaded.build(1)
    return cluster, run(cluster, loaded.jobs, loaded.seconds, policy=policy, orders=orders_of(loaded.events))


def contents(cluster: Cluster) -> Mapping[str, int]:
    return {inode.path: inode.content for inode in cluster.namespace.files() if inode.path.startswith("/proj/old")}


def on_target(cluster: Cluster, index: int) -> list[str]:
    return [inode.path for inode in cluster.namespace.files()
            for part in (inode.layout.components if inode.layout else ())
            if any(stripe.ost_index == index for stripe in part.objects)]


def test_a_target_is_emptied_while_jobs_run() -> None:
    loaded = scenario.library("drain-target")
    (drained, with_tierd), (usual, without) = lived(loaded, Settings()), lived(loaded, None)
    assert len(on_target(usual, 4)) > 200
    assert on_target(drained, 4) == []
    assert contents(drained) == contents(usual)
    assert len(contents(drained)) == 200
    said = [words for _, words in with_tierd.log]
    assert any("drain of lustre-OST0004 is complete" in words for words in said), said
    old = [entry for entry in with_tierd.entries if entry.place.startswith("/proj/old")]
    assert len({entry.place for entry in old}) == 200
    assert {entry.outcome for entry in old} == {ActOutcome.DONE}
    assert [entry.outcome for entry in with_tierd.entries if entry.place == "/proj/flow/stream.dat"] == [
        ActOutcome.GAVE_WAY, ActOutcome.DONE], "open at first, moved after the job"
    stream = "ior_stream.1001"
    assert with_tierd.mean(stream, 20, 220) >= 0.95 * without.mean(stream, 20, 220), "drain.max_stream_loss"
    job = "trickle.1504"
    assert with_tierd.mean(job, 20, 370) >= 0.98 * without.mean(job, 20, 370)


def test_an_order_to_drain_is_no_change_of_the_cluster() -> None:
    text = """
        seconds = 30
        [[job]]
        kind = "small_files"
        [[event]]
        at = 5
        kind = "drain_target"
        target = "OST0004"
        [[event]]
        at = 6
        kind = "no_new_objects"
        target = "OST0003"
    """
    loaded = scenario.parse(text)
    assert orders_of(loaded.events) == [(5.0, "OST0004")]
    cluster = loaded.build(1)
    cluster.advance(10)
    assert [ost.max_create_count > 0 for ost in cluster.osts] == [True, True, True, False, True, True]
