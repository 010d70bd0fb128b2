import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid


@given(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)),
       st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)))
def test_fids_are_in_the_order_of_their_numbers(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (Fid(*one) < Fid(*other), Fid(*one) >= Fid(*other)) == (one < other, one >= other)
    assert (Fid(*one) == Fid(*other)) == (one == other)
    assert bool(Fid(*one)) == (one != (0, 0)), "no FID"
    assert copy.deepcopy(Fid(*one)) == pickle.loads(pickle.dumps(Fid(*one))) == Fid(*one)


@pytest.mark.parametrize("parts", [(-1, 0), (1 << 64, 0), (0, 1 << 32), (0, 0, 1 << 32)])
def test_a_part_that_does_not_fit_makes_no_fid(parts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Fid(*parts)
