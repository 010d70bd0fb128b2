"""Settings of ``[cluster]`` and ``[reader]``: leader, movers and changelog readers, which work together over NATS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le
from pydantic import Strict

from tierd.config.act import WholePathOrNone, text_like
from tierd.policies.protocol import Table

Server = Annotated[str, text_like(r"(?:nats|tls)://[A-Za-z0-9.\-\[\]:]+", "give an address such as tls://broker1:4222")]
NodeName = Annotated[str, text_like(r"(?:[A-Za-z0-9][A-Za-z0-9_-]{0,62})?", "use letters, digits, - and _ only")]


@dataclass(frozen=True)
class ClusterSettings(Table):
    """Connection to NATS. Without servers, tierd works alone: it detects, decides and moves in one process."""

    servers: tuple[Server, ...] = ()
    """Addresses of the NATS servers: ``tls://broker1:4222``. Empty: no cluster."""
    name: NodeName = ""
    """Name of this process among movers and readers. "": name of the host."""
    nkey_seed_file: WholePathOrNone = ""
    """File with the NKey seed of the user of this role; readable for tierd's user alone."""
    ca_file: WholePathOrNone = ""
    """Certificates that sign the servers' certificates. "": those of the system, for ``tls://``."""
    cert_file: WholePathOrNone = ""
    """Certificate of this node, for servers that verify clients."""
    key_file: WholePathOrNone = ""
    """Key of ``cert_file``."""
    replicas: Literal[1, 3, 5] = 3
    """NATS servers that store each message. 1 suits a single server, for tests."""
    timeout_seconds: Annotated[float, Gt(0), Le(60)] = 5.0
    """Time to wait for an answer of NATS. After it, the result of the request is unknown."""
    ack_wait_seconds: Annotated[float, Ge(1)] = 20.0
    """Time without a sign of a mover after which NATS gives its message to another mover."""
    deadline_seconds: Annotated[float, Ge(5)] = 60.0
    """Time after which no mover begins a file of a message, or exchanges its layout. The leader then checks it."""

    @property
    def enabled(self) -> bool:
        return bool(self.servers)


@dataclass(frozen=True)
class ReaderSettings(Table):
    """Readers of changelogs (``tierd reader``). ``[sense] mdts`` and ``readers`` name the MDTs and their users."""

    enabled: Annotated[bool, Strict()] = False
    """Whether the leader takes changelog records from readers instead of reading the changelogs itself."""
    window_seconds: Annotated[float, Gt(0), Le(60)] = 5.0
    """Time between two tallies of an MDT."""
    lease_seconds: Annotated[float, Ge(5), Le(300)] = 10.0
    """A reader that has not renewed its lease of an MDT for this time loses it to another reader."""
    max_mdts: Annotated[int, Ge(0)] = 0
    """MDTs that one reader reads at most; 0 for no limit. With 40 MDTs and 6 readers: 8, so that one may fail."""
