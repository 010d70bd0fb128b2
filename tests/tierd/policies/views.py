"""Views to test policies with, made of a few lines."""

from collections.abc import Collection, Sequence
from typing import Any

from tests.tierd.worlds import TARGETS, window
from tierd.detect.view import View
from tierd.model import Facts, Finding, JobLoad, NamespaceLoad, TargetFill, Window
from tierd.policies.protocol import Policy

FLASH = ("lustre-OST0000", "lustre-OST0001")
POOLS = {"flash": FLASH, "hdd": TARGETS}
GB = 10**9


def halves(*parts: Any, count: int = 4) -> list[Window]:
    """Windows of half a minute with the same in each."""
    return [window(n, *parts, seconds=30.0) for n in range(count)]


def filled(flash: float = 0.3, hdd: float = 0.3, size: int = 100 * GB, growth: float = 0.0) -> dict[str, TargetFill]:
    """Room of all targets, by the share that is used."""
    return {t: TargetFill(size, round(size * (1 - (flash if t in FLASH else hdd))), growth) for t in (*FLASH, *TARGETS)}


def found_by(policy: Policy, view: View, **settings: Any) -> list[Finding]:
    assert policy.find is not None
    return list(policy.find(view, policy.settings(**settings)))


def look(policy: Policy, windows: Sequence[Window] | None = None, facts: Facts | None = None,
         active: Collection[tuple[str, str, str]] = (), **settings: Any) -> list[Finding]:
    """What a policy finds."""
    view = View(windows or halves(), facts or Facts(pools=POOLS, fill=filled()), active=active)
    found = found_by(policy, view, **settings)
    for finding in found:
        assert finding.kind == policy.name
        assert "\n" not in finding.sentence
        assert finding.sentence.isprintable()
        assert len({f.key for f in found}) == len(found), "each problem once"
    return found


def reads_whole(job: str, files_s: float, size: int, targets: Sequence[str] = TARGETS,
                rpc_bytes: int = 0) -> tuple[list[JobLoad], NamespaceLoad]:
    """Existing files, each opened, read whole and closed."""
    files = 30.0 * files_s
    each, rpc = files * size / len(targets), min(rpc_bytes or size, size)
    return ([JobLoad(t, job, read_bytes=each, reads=each / rpc, sizes={rpc: each / rpc}) for t in targets],
            NamespaceLoad(job, opens=files, closes=files))
