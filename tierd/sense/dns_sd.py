"""Exporters found by name: SRV records name host and port, A and AAAA records the hosts of a name with a port.

``_lustre-exporter._tcp.example.org`` is asked for SRV; ``oss.example.org:9169`` for A and AAAA. What was found is kept
while the name server does not answer, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tierd.clock import Clock
from tierd.sense.discovered import url_of

LIFETIME_SECONDS = 3.0
"""A question may take so long, all name servers together."""
NO_DNS = "exporter_dns needs the package dnspython (pip install 'lustre-tierd[dns]')"

Resolve = Callable[[str, str], Sequence[str]]
"""Records of a name and a kind (``SRV``, ``A``, ``AAAA``) in the form of a zone file; none: ().

Raises OSError when the name servers do not answer, or answer that the name does not exist.
"""


def resolver(server: tuple[str, int] | None = None) -> Resolve:
    """Asks the name servers of ``/etc/resolv.conf``, or one. Raises OSError without the package or the file."""
    try:
        from dns import exception  # noqa: PLC0415 -- needed by those who name such exporters
        from dns.resolver import NoAnswer, Resolver  # noqa: PLC0415
    except ImportError:
        raise OSError(NO_DNS) from None
    try:
        asked = Resolver(configure=server is None)
    except exception.DNSException as error:
        raise OSError(f"name servers: {error}") from error

    if server is not None:
        asked.nameservers, asked.port = [server[0]], server[1]

    def resolve(name: str, kind: str) -> Sequence[str]:
        try:
            return [str(record) for record in asked.resolve(name, kind, lifetime=LIFETIME_SECONDS)]
        except NoAnswer:
            return ()
        except exception.DNSException as error:
            raise OSError(f"{name} ({kind}): {error}") from error

    return resolve


def targets_of(name: str, resolve: Resolve) -> tuple[str, ...]:
    """``host:port`` of every exporter a name stands for, sorted. Raises OSError or ValueError.

    >>> targets_of("_x._tcp.a.org", lambda name, kind: ["0 5 9169 oss1.a.org."])
    ('oss1.a.org:9169',)
    >>> targets_of("oss.a.org:9169", lambda name, kind: ["10.0.0.1"] if kind == "A" else ["fd00::1"])
    ('10.0.0.1:9169', '[fd00::1]:9169')
    """
    host, colon, port = name.rpartition(":")
    if not colon:
        found = []
        for record in resolve(name, "SRV"):
            parts = record.split()
            if len(parts) != 4 or not parts[2].isdecimal():
                raise ValueError(f"{name}: not an SRV record: {record[:80]!r}")
            found.append(f"{parts[3].rstrip('.')}:{parts[2]}")
    else:
        found = [f"{address}:{port}" for address in resolve(host, "A")]
        found += [f"[{address}]:{port}" for address in resolve(host, "AAAA")]
    if not found:
        raise ValueError(f"{name}: no such records")
    return tuple(sorted(found))


class DnsTargets:
    """Names, asked for again now and then."""

    def __init__(self, names: Sequence[str], resolve: Resolve, clock: Clock, refresh_seconds: float,
                 scheme: str = "http") -> None:
        self._names = names
        self._resolve = resolve
        self._clock = clock
        self._refresh_seconds = refresh_seconds
        self._scheme = scheme
        self._known: dict[str, tuple[str, ...]] = {}
        self._asked_at: float | None = None
        self._troubles: dict[str, str] = {}

    @property
    def trouble(self) -> str:
        """Names that could not be asked for, in words."""
        return "; ".join(self._troubles.values())

    def __call__(self) -> tuple[str, ...]:
        """URLs, of a name that cannot be asked for as they were last."""
        now = self._clock.now()
        if self._asked_at is None or not 0 <= now - self._asked_at < self._refresh_seconds:
            self._asked_at = now
            self._troubles = {}
            for name in self._names:
                self._ask(name)
        return tuple(url for name in self._names for url in self._known.get(name, ()))

    def _ask(self, name: str) -> None:
        try:
            self._known[name] = tuple(url_of(target, self._scheme) for target in targets_of(name, self._resolve))
        except (OSError, ValueError) as error:
            kept = "; what it stood for before is kept" if name in self._known else ""
            self._troubles[name] = f"{error}{kept}"
