"""An OSS for agents: parameter files below a root, with the simulated token bucket filter, and the real texts."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from lustre.parameters import Roots, Tree
from simulator.engine import Engine
from simulator.servers.tbf import Tbf

CAPTURE = Path(__file__).parents[1] / "captures/2.17.57/tbf.txt"


def printed(command: str, after: str = "") -> list[bytes]:
    """What the real ``lctl`` printed for a command each time, after another line."""
    text = CAPTURE.read_text().partition(after)[2] if after else CAPTURE.read_text()
    found = re.findall(rf"^\$ lctl {re.escape(command)}\n(.*?)^# exit", text, re.MULTILINE | re.DOTALL)
    return [each.partition("=\n")[2].encode() for each in found]


@dataclass
class Oss:
    root: Path
    tbf: Tbf = field(default_factory=lambda: Tbf(Engine()))
    texts: list[str] = field(default_factory=list)
    """All that was written to ``nrs_tbf_rule``."""

    def __post_init__(self) -> None:
        (self.root / "proc/fs/lustre/obdfilter/lustre-OST0000").mkdir(parents=True)
        self.set("nrs_policies", "tbf jobid")
        self.texts.clear()

    @property
    def tree(self) -> Tree:
        return Tree(Roots.of(self.root / "proc", self.root / "sys"))

    def set(self, name: str, value: str) -> str:
        """As ``lctl set_param``: the last part of a name counts. Returns the error."""
        self.texts.append(value)
        try:
            self.tbf.set_parameter(name.rpartition(".")[2], value)
        except OSError as error:
            return str(error.strerror)
        for file, text in self.tbf.files():
            self.write(file, text.encode())
        return ""

    def write(self, name: str, text: bytes) -> None:
        path = self.root / "sys/kernel/debug/lustre/ost/OSS/ost_io" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)

    @property
    def rules(self) -> list[str]:
        """Names of rules, in the order in which they are tried."""
        return [rule.name for rule in self.tbf.rules]
