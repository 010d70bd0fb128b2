"""Numbers of keys, and tables that have lost all of their rows."""

from __future__ import annotations

import numpy as np

from tierd.sense.changelogs.files import UNKNOWN, FileTable, KeyIndex


def test_an_index_without_keys_finds_none_and_takes_the_next() -> None:
    index, keys = KeyIndex(2), np.array([[7, 1]], np.uint64)
    index.replace(keys[:0])
    assert index.find(keys).tolist() == [UNKNOWN]
    assert index.numbers_of(keys).tolist() == [0]


def test_a_table_that_has_lost_all_files_knows_none() -> None:
    table = FileTable()
    row = table.rows_of(keys := np.array([[7, 1]], np.uint64))
    table.put(row, 0, 0, created=True)
    table.present[row] = False
    table.compact()
    assert table.has(keys).tolist() == [False]
    assert table.rows_of(keys).tolist() == [0]
