"""Small worlds to test detection with: windows made of a few lines."""

from collections.abc import Sequence

from tierd.model import JobLoad, NamespaceLoad, Window
from tierd.policies.noisy_neighbour import NoisyNeighbourEvidence
from tierd.text import Carrier

TARGETS = tuple(f"lustre-OST000{n}" for n in range(2, 6))
MIB = 1 << 20


def stream(job: str, mb_s: float, seconds: float = 5.0, targets: Sequence[str] = TARGETS,
           rpc_bytes: int = MIB) -> list[JobLoad]:
    """A streaming writer at a rate, spread evenly."""
    each = mb_s * 1e6 * seconds / len(targets)
    return [JobLoad(t, job, write_bytes=each, writes=each / rpc_bytes, sizes={rpc_bytes: each / rpc_bytes})
            for t in targets]


def small_files(job: str, files_s: float, size: int = MIB, seconds: float = 5.0,
                targets: Sequence[str] = TARGETS) -> tuple[list[JobLoad], NamespaceLoad]:
    """A job that creates whole files: one write and one sync each."""
    each = files_s * seconds / len(targets)
    loads = [JobLoad(t, job, write_bytes=each * size, writes=each, other_operations=each, sizes={size: each})
             for t in targets]
    files = files_s * seconds
    return loads, NamespaceLoad(job, opens=files, closes=files, creates=files)


def small_io(job: str, rpc_s: float, size: int = 4096, seconds: float = 5.0,
             targets: Sequence[str] = TARGETS) -> list[JobLoad]:
    """Random small writes in a large file."""
    each = rpc_s * seconds / len(targets)
    return [JobLoad(t, job, write_bytes=each * size, writes=each, sizes={size: each}) for t in targets]


def window(number: int, *parts: list[JobLoad] | tuple[list[JobLoad], NamespaceLoad],
           conditions: dict[str, str] | None = None, seconds: float = 5.0) -> Window:
    """The number-th window of a recording, with what the jobs did in it."""
    loads: dict[tuple[str, str], JobLoad] = {}
    namespace: dict[str, NamespaceLoad] = {}
    for part in parts:
        mine, names = part if isinstance(part, tuple) else (part, None)
        loads.update({(load.target, load.job): load for load in mine})
        if names is not None:
            namespace[names.job] = names
    return Window(number * seconds, (number + 1) * seconds, loads, namespace, conditions or {})


def noise(**numbers: float) -> NoisyNeighbourEvidence:
    """A victim at 44 MB/s instead of 66 MB/s, beside 20 unread files of 1 MiB per second."""
    usual = {
        "victim_usual_bytes_per_second": 66e6, "victim_bytes_per_second": 44e6, "slowdown": 1.5, "loss_low": 0.28,
        "loss_high": 0.38, "loss_probability": 0.99, "carrier": Carrier.ARRIVAL, "aggressor_came_at": 40.0,
        "aggressor_operations_per_second": 40.0, "aggressor_operations_share": 0.4,
        "aggressor_bytes_per_second": 20.0 * MIB, "aggressor_mean_rpc_bytes": float(MIB),
        "aggressor_largest_rpc_bytes": MIB, "aggressor_read_share": 0.0, "aggressor_files_per_second": 20.0,
        "aggressor_bytes_per_file": float(MIB),
    }
    return NoisyNeighbourEvidence(**{**usual, **numbers})  # type: ignore[arg-type]
