"""Settings of ``[cluster]`` and ``[reader]``: leader, movers and changelog readers, which work together over NATS."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, Strict

from tierd.config.act import whole_path_or_none
from tierd.policies.protocol import Table

_SERVER = re.compile(r"(?:nats|tls)://[A-Za-z0-9.\-\[\]:]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def server_url(text: str) -> str:
    """The address of a NATS server. Raises ValueError otherwise.

    >>> server_url("tls://broker1.example.org:4222")
    'tls://broker1.example.org:4222'
    """
    if not _SERVER.fullmatch(text):
        raise ValueError("give an address such as tls://broker1:4222")
    return text


def node_name(text: str) -> str:
    """A name of letters, digits, ``-`` and ``_``, or "". Raises ValueError otherwise.

    >>> node_name("mover-07")
    'mover-07'
    """
    if text and not _NAME.fullmatch(text):
        raise ValueError("use letters, digits, - and _ only")
    return text


@dataclass(frozen=True)
class ClusterSettings(Table):
    """Connection to NATS. Without servers, tierd works alone: it detects, decides and moves in one process."""

    servers: tuple[Annotated[str, AfterValidator(server_url)], ...] = ()
    """Addresses of the NATS servers: ``tls://broker1:4222``. Empty: no cluster."""
    name: Annotated[str, AfterValidator(node_name)] = ""
    """Name of this process among movers and readers. "": name of the host."""
    nkey_seed_file: Annotated[str, AfterValidator(whole_path_or_none)] = ""
    """File with the NKey seed of the user of this role; readable for tierd's user alone."""
    ca_file: Annotated[str, AfterValidator(whole_path_or_none)] = ""
    """Certificates that sign the servers' certificates. "": those of the system, for ``tls://``."""
    cert_file: Annotated[str, AfterValidator(whole_path_or_none)] = ""
    """Certificate of this node, for servers that verify clients."""
    key_file: Annotated[str, AfterValidator(whole_path_or_none)] = ""
    """Key of ``cert_file``."""
    replicas: Literal[1, 3, 5] = 3
    """NATS servers that store each message. 1 suits a single server, for tests."""
    timeout_seconds: Annotated[float, Gt(0), Le(60)] = 5.0
    """Time to wait for an answer of NATS. After it, the result of the request is unknown."""
    ack_wait_seconds: Annotated[float, Ge(1)] = 20.0
    """Time without a sign of a mover after which NATS gives its message to another mover."""
    deadline_seconds: Annotated[float, Ge(5)] = 60.0
    """Time after which no mover begins a file of a message, or exchanges its layout. The leader then looks at it."""

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
