from __future__ import annotations

from lustre.fid import Fid
from tierd.sense.paths import PathCache

A, B, C = (Fid(0x200000400, number) for number in (1, 2, 3))


def test_a_path_that_a_record_names_again_is_not_the_next_to_be_dropped() -> None:
    asked: list[Fid] = []
    paths = PathCache(lambda fid: asked.append(fid) or "/asked", size=2)  # type: ignore[func-returns-value]
    paths.learn(A, "/a")
    paths.learn(B, "/b")
    paths.learn(A, "/a")
    assert (paths(C), paths(A), asked) == ("/asked", "/a", [C])
    assert B not in paths.known
