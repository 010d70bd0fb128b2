"""Weighs the expected benefit of an act against its costs.

The benefit is the throughput that the victim would regain, judged by earlier acts. The cost is the disk load of the
moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tierd.model import Action, Finding, SlowdownEvidence, Table
from tierd.refusal import Reason, Refusal
from tierd.text import Carrier, bytes_text, percent, rate_text
from tierd.validators import Factor, Positive, Share

FIRST_EFFECT = 0.8
"""Part of a loss that an act is expected to win back, before any judgement. A choice."""
FIRST_WEIGHT = 2.0
"""Weight of it, in judgements. A choice."""


@dataclass(frozen=True)
class Settings(Table):
    """Limits of benefit and cost."""

    min_gain: Share = 0.08
    """Minimum expected gain of the victim as a fraction of its usual throughput: a loss of a tenth, of which an act is
    expected to win back ``first_effect``."""
    min_probability: Share = 0.8
    """Minimum probability that the victim loses ``noisy_neighbour.min_loss``. A choice: odds of four to one, as for a
    verdict."""
    min_probability_seen: Share = 0.95
    """Minimum probability of this loss if tierd saw the neighbour start, or knows what the victim got before: more
    windows soon make sure. A choice."""
    factor: Factor = 2.0
    """Minimum expected gain of the victim as a multiple of the bytes moved. A choice."""
    horizon_seconds: Positive = 600.0
    """Expected stay of the neighbour: moves must pay within this time. A choice."""


def effect(won_back: Sequence[float]) -> float:
    """Part of a loss that an act is expected to win back: the mean of earlier judgements and ``first_effect``.

    >>> effect([]), effect([0.0, 0.0, -3.0, 0.0]), effect([1.0] * 8)
    (0.8, 0.1, 0.96)
    """
    seen = [min(1.0, max(-1.0, part)) for part in won_back]
    first = FIRST_EFFECT * FIRST_WEIGHT
    return round((first + sum(seen)) / (FIRST_WEIGHT + len(seen)), 6)


def refusal(finding: Finding, evidence: SlowdownEvidence, expected: float, settings: Settings) -> Refusal | None:
    """Why an act is not worth it. ``expected`` is the part of the loss that it is expected to win back."""
    usual = evidence.victim_usual_bytes_per_second
    gain = expected * (usual - evidence.victim_bytes_per_second)
    if not gain >= settings.min_gain * usual:  # also true for NaN
        return Refusal(Reason.LITTLE_TO_GAIN, f"the expected gain of {rate_text(gain)} is less than "
                       f"{percent(settings.min_gain)} of the usual {rate_text(usual)}").about(finding.victim)
    seen = evidence.aggressor_came_at or evidence.carrier is Carrier.HISTORY
    needed = settings.min_probability_seen if seen else settings.min_probability
    if not evidence.loss_probability >= needed:
        return Refusal(Reason.UNCERTAIN_GAIN, f"the loss is real with a probability of "
                       f"{percent(evidence.loss_probability)}, and {percent(needed)} is needed"
                       ).about(finding.victim)
    return None


def cost_refusal(finding: Finding, evidence: SlowdownEvidence, expected: float, actions: Sequence[Action],
                 settings: Settings) -> Refusal | None:
    """Why the moves of a plan are not worth it: they cost the victim's disks more than the victim gains."""
    moved = sum(action.size_bytes for action in actions)
    gain = expected * (evidence.victim_usual_bytes_per_second - evidence.victim_bytes_per_second)
    if moved and gain * settings.horizon_seconds < settings.factor * moved:
        return Refusal(Reason.MOVES_TOO_DEAR, f"moving {bytes_text(moved)} of existing files costs the disks more "
                       f"than the victim gains in {settings.horizon_seconds:.0f} s").about(finding.aggressor)
    return None
