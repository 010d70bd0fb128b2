from __future__ import annotations

import pytest

from simulator.devices import build
from simulator.devices.device import DeviceTimeAccount, Io
from simulator.devices.hdd import HddSettings
from simulator.engine import Engine
from simulator.servers.journal import Journal


def journal(engine: Engine) -> Journal:
    return Journal(engine, build(engine, HddSettings()), 1 << 30)


def test_those_who_ask_together_share_a_commit() -> None:
    engine = Engine()
    log = journal(engine)
    waiting = []
    for number in range(20):
        log.change(("inode", number))
        waiting.append(log.commit())
    engine.run_until(1.0)
    assert all(done.done for done in waiting)
    assert log.commits <= 2


def test_changes_are_committed_without_anybody_asking() -> None:
    engine = Engine()
    log = journal(engine)
    log.change("inode")
    engine.run_until(4.9)
    assert log.commits == 0
    engine.run_until(10)
    assert log.commits == 1


def test_whoever_asks_during_a_commit_waits_for_the_next() -> None:
    engine = Engine()
    device = build(engine, HddSettings())
    log = Journal(engine, device, 1 << 30)
    device.submit(Io(True, 0, 16 << 20, lambda: None))
    log.change("one")
    first = log.commit()
    engine.run_until(0.01)
    log.change("two")
    second = log.commit()
    engine.run_until(5)
    assert first.done
    assert second.done
    assert log.commits == 2


def test_jobs_pay_for_their_part_of_a_transaction() -> None:
    engine, account = Engine(), DeviceTimeAccount()
    device = build(engine, HddSettings())
    log = Journal(engine, device, 1 << 30, account=account)
    for number in range(3):
        log.change(("inode", number), job="mdtest.1")
    log.change(("inode", 9), job="ior.1")
    log.commit()
    engine.run_until(1.0)
    assert account.seconds["mdtest.1"] == pytest.approx(3 * account.seconds["ior.1"])
    assert sum(account.seconds.values()) > 0
