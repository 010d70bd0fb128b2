"""Is it worth it? What the victim would win back, by what such acts won so far, against what it costs the others.

Costs are what other streams on the same targets would lose again (a slow victim leaves them room), and what our own
moves ask of the disks of the victim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le, Lt

from tierd.acts import ActKind
from tierd.model import Action, Finding, NoisyNeighbourEvidence
from tierd.refusal import Reason, Refusal
from tierd.text import percent


@dataclass(frozen=True)
class Settings:
    """When an act is worth it."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    min_gain: Annotated[float, Gt(0), Lt(1)] = 0.12
    """Fraction of its usual throughput that the victim must be expected to win, at the least."""
    factor: Annotated[float, Ge(1)] = 2.0
    """The victim must be expected to win so many times what the act costs others."""
    max_taken: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Fraction of its throughput that another stream may lose by it, even if it only won that by the noise."""
    horizon_seconds: Annotated[float, Gt(0)] = 600.0
    """The noise is expected to last so long: in this time the moves must pay."""
    first_effect: Annotated[float, Gt(0), Le(1)] = 0.8
    """Part of a loss that is expected to be won back before anything was learnt."""
    first_weight: Annotated[float, Gt(0)] = 2.0
    """How many judgements it takes to outweigh that."""


def effect(won_back: Sequence[float], settings: Settings) -> float:
    """Part of a loss that such an act wins back: the mean of what was judged, with the first expectation among it.

    >>> effect([], Settings()), effect([0.0, 0.0, -3.0, 0.0], Settings()), effect([1.0] * 8, Settings())
    (0.8, 0.1, 0.96)
    """
    seen = [min(1.0, max(-1.0, part)) for part in won_back]
    first = settings.first_effect * settings.first_weight
    return round((first + sum(seen)) / (settings.first_weight + len(seen)), 6)


def refusal(finding: Finding, evidence: NoisyNeighbourEvidence, expected: float,
            settings: Settings) -> Refusal | None:
    """Why nothing should be done about the finding, when so much of the loss is expected to be won back."""
    usual = evidence.victim_usual_bytes_per_second
    gain = expected * (usual - evidence.victim_bytes_per_second)
    if not gain >= settings.min_gain * usual:  # a figure that is no number is no gain
        return Refusal(Reason.LITTLE_TO_GAIN, f"it would win {gain / 1e6:.1f} of {usual / 1e6:.1f} MB/s, which is less "
                       f"than {percent(settings.min_gain)}").of(finding.victim)
    lost = evidence.bystanders_gain_bytes_per_second
    part = evidence.bystanders_gain_share
    if part > settings.max_taken or gain < settings.factor * lost:
        return Refusal(Reason.OTHERS_WOULD_LOSE, f"other streams on these targets won {lost / 1e6:.1f} MB/s since "
                       f"({percent(part)} of one of them) and would lose it again").of(finding.victim)
    return None


def cost_refusal(finding: Finding, evidence: NoisyNeighbourEvidence, expected: float, actions: Sequence[Action],
                 settings: Settings) -> Refusal | None:
    """Why the moves of a plan should stay undone: they read more from the victim's disks than they win it back."""
    moved = sum(action.size_bytes for action in actions if action.kind == ActKind.MIGRATE)
    gain = expected * (evidence.victim_usual_bytes_per_second - evidence.victim_bytes_per_second)
    if moved and gain * settings.horizon_seconds < settings.factor * moved:
        return Refusal(Reason.MOVES_TOO_DEAR, f"moving {moved / 1e6:.0f} MB of existing files costs the disks more "
                       f"than it wins in {settings.horizon_seconds:.0f} s").of(finding.aggressor)
    return None
