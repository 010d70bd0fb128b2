"""Slots of pools and of striped files: whatever is sent and ends in which order, no limit is exceeded."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tierd.cluster.dispatch import SentMessage, Slots

POOLS = {"flash": ("OST0", "OST1"), "hdd": ("OST2", "OST3", "OST4"), "empty": ()}
TARGETS = ("OST0", "OST1", "OST2", "OST3", "OST4")
def message_of(targets: list[str], pool: str) -> SentMessage:
    return SentMessage("", targets[0], frozenset(targets[1:]), frozenset({pool}), {}, "")


MESSAGES = st.builds(message_of, st.lists(st.sampled_from(TARGETS), min_size=1, max_size=3, unique=True).map(sorted),
                     st.sampled_from(sorted(POOLS)))


@given(st.integers(1, 3), st.lists(st.tuples(MESSAGES, st.integers(0, 5)), max_size=40))
def test_no_pool_and_no_target_is_used_by_more_than_allowed(at_once: int,
                                                            wanted: list[tuple[SentMessage, int]]) -> None:
    """Of messages with the same source, its consumer lets movers work on ``at_once``: those that were sent first."""
    sent: list[SentMessage] = []
    for message, ends in wanted:
        if Slots(at_once, POOLS, sent).has(message):
            sent.append(message)
        else:
            assert sent, "a message alone is always sent"
        to_pool = Counter(pool for each in sent for pool in each.pools)
        assert all(count <= at_once * max(1, len(POOLS[pool])) for pool, count in to_pool.items())
        worked_on, of_source = Counter[str](), Counter[str]()
        for each in sent:
            of_source[each.source] += 1
            if of_source[each.source] <= at_once:
                worked_on.update({each.source, *each.targets})
        assert all(count <= at_once for count in worked_on.values())
        del sent[:ends // 2]
