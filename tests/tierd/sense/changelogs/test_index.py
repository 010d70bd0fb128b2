"""Numbers of keys."""

from __future__ import annotations

import numpy as np

from tierd.sense.changelogs.index import UNKNOWN, KeyIndex


def test_an_index_without_keys_finds_none_and_takes_the_next() -> None:
    index, keys = KeyIndex(2), np.array([[7, 1]], np.uint64)
    index.replace(keys[:0])
    assert index.find(keys).tolist() == [UNKNOWN]
    assert index.numbers_of(keys).tolist() == [0]
