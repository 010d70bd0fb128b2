"""Did a default striping of directories help? Compares the metadata operations below a directory with before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tierd.acts import Verdict
from tierd.decide.directory_striping import Settings
from tierd.model import DirectoryActivity


@dataclass(frozen=True, slots=True)
class StripingJudgement:
    """A verdict, and the operations per second before and after the act."""

    verdict: Verdict
    before: float
    after: float

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        numbers = f"{self.before:.0f} operations/s before, {self.after:.0f} after"
        return {Verdict.HELPED: f"it helped: {numbers}", Verdict.DID_NOT_HELP: f"it did not help: {numbers}",
                Verdict.CANNOT_TELL: f"no verdict, because the jobs have stopped: {numbers}"}[self.verdict]


def rate_below(directory: str, activities: Iterable[DirectoryActivity], seconds: float) -> float:
    """Creates, opens and unlinks per second in a directory and below it."""
    done = sum(each.creates + each.opens + each.unlinks for each in activities
               if each.directory == directory or each.directory.startswith(f"{directory}/"))
    return done / seconds if seconds > 0 else 0.0


def judge(before: float, after: float, settings: Settings) -> StripingJudgement:
    """The verdict on an act after which the operations of a directory were measured again."""
    if after < settings.gone_share * before:
        return StripingJudgement(Verdict.CANNOT_TELL, before, after)
    helped = after >= (1 + settings.min_gain) * before
    return StripingJudgement(Verdict.HELPED if helped else Verdict.DID_NOT_HELP, before, after)
