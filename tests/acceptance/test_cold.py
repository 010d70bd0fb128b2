"""The last word: every file that was moved, read from its targets long after."""

import pytest

from tests.acceptance.ledger import Ledger


def test_every_file_is_whole_half_a_minute_later_and_cold(ledger: Ledger) -> None:
    if not len(ledger):
        pytest.skip("nothing was moved in this run")
    assert ledger.differences() == []
