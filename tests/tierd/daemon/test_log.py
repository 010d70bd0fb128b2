"""Sentences of the log and the journal."""

from __future__ import annotations

from tierd.acts import Verdict
from tierd.daemon.log import judged_sentence, remeasured_sentence
from tierd.model import Evidence, Finding
from tierd.verify.judgement import Judgement

FINDING = Finding("noisy-neighbour", 0.0, "small.1", "stream.2", (), "", Evidence())


def test_rates_of_a_verdict_are_scaled_and_have_units() -> None:
    measured = Judgement(Verdict.HELPED, 176.8e9, 44e6, 132.6e9, part=0.75, interval=(0.6, 0.9))
    numbers = ("stream.2: 177 GB/s before the noise, 44.0 MB/s during, 133 GB/s after; "
               "75% of the loss regained (60% to 90%)")
    assert judged_sentence(FINDING, measured) == f"KEPT: it helped. {numbers}"
    held = remeasured_sentence(FINDING, Judgement(Verdict.DID_NOT_HELP, 176.8e9, 44e6, 46e6))
    assert "(46.0 MB/s, 44.0 MB/s before the act)" in held
