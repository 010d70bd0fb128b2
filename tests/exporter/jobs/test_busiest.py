"""Who is chosen is who would be chosen if every score were halved at every pass."""

from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.jobs.busiest import Busiest, Scored

NAMES = "abcdefgh"
passes = st.lists(
    st.tuples(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 40)), st.sets(st.sampled_from(NAMES), max_size=3)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=200)
@given(passes, st.integers(1, 5), st.integers(1, 900))
def test_the_ranking_is_as_if_every_score_were_halved(passes, most, quiet) -> None:
    every = {name: Scored(name) for name in NAMES}
    halved = dict.fromkeys(NAMES, 0.0)
    busiest: Busiest[Scored] = Busiest(most)
    there: set[str] = set()
    chosen: list[str] = []
    for number, (work, absent) in enumerate(passes):
        for _ in range(quiet if number == 1 else 1):
            busiest.begin(every.values)
            halved = {name: score / 2 for name, score in halved.items()}
        for name, growth in work.items():
            busiest.credit(every[name], growth)
            halved[name] += growth
        before, there = there, {*NAMES} - absent
        risen = [every[name] for name in there if name in work or name not in before]
        rechoose = not there.issuperset(chosen)
        chosen = [one.name for one in busiest.choose(risen, [every[name] for name in there], rechoose=rechoose)]
        order = sorted(there, key=lambda name: (halved[name], name), reverse=True)
        assert chosen == order[:most]


def test_scores_stay_finite_however_long_it_runs() -> None:
    one, other = Scored("one"), Scored("other")
    busiest: Busiest[Scored] = Busiest(1)
    for number in range(5000):
        busiest.begin(lambda: [one, other])
        busiest.credit(one, 1 << 64)
        busiest.credit(other, (1 << 65) * (number == 4999))
        (chosen,) = busiest.choose([one, other], [one, other])
        assert chosen is (one if number < 4999 else other)
