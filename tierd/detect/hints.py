"""Hints for MPI-IO and HDF5, by the I/O pattern of a job, as the striping guides advise (NOTUR).

ROMIO, the MPI-IO of MPICH, Intel MPI and (as one of two) Open MPI, reads hints from the file that ``ROMIO_HINTS``
names, or from the ``MPI_Info`` object of the open call. Collective buffering lets a few processes collect the records
of all and write whole stripes. Data sieving reads what lies between records before it writes: on a shared file it takes
locks of other processes.
"""

from __future__ import annotations

from tierd.model import Advice
from tierd.text import binary_text, count_of, quoted

STRIPE_BYTES = 4 << 20
"""Stripe size for collective buffering: the size of a usual RPC."""
SMALL_RECORD_BYTES = 1 << 20
"""Records below this size are worth collecting; larger ones already fill a good part of an RPC."""


def hints(job: str, record_bytes: float, read_share: float, objects: int) -> tuple[Advice, ...]:
    """Hints for a job with shared or small I/O. None for large records, which collective buffering does not help.

    ``read_share`` is that of reads among its RPCs, ``objects`` the number of objects that its file should have.

    >>> [advice.command for advice in hints("mpi.5", 47008, 0.0, 4)][0]
    'romio_cb_write enable, romio_ds_write disable, cb_nodes 4, striping_factor 4, striping_unit 4194304'
    >>> hints("mpi.5", 16 << 20, 0.0, 4)
    ()
    """
    if not 0 < record_bytes < SMALL_RECORD_BYTES:
        return ()
    reads, writes = read_share > 0.1, read_share < 0.9
    chosen = [*(["romio_cb_read enable"] if reads else []),
              *(["romio_cb_write enable", "romio_ds_write disable"] if writes else []),
              f"cb_nodes {objects}",
              *([f"striping_factor {objects}", f"striping_unit {STRIPE_BYTES}"] if writes else [])]
    calls = " and ".join([*(["MPI_File_write_all"] if writes else []), *(["MPI_File_read_all"] if reads else [])])
    size, by = binary_text(record_bytes), count_of(objects, "process", "processes")
    return (
        Advice(", ".join(chosen), f"in the file that ROMIO_HINTS names, for {quoted(job)} with MPI-IO",
               f"records of {size} are collected into whole stripes by {by}, if the application calls {calls}; "
               "the striping applies to new files"),
        Advice(f"H5Pset_dxpl_mpio(H5FD_MPIO_COLLECTIVE), H5Pset_alignment({SMALL_RECORD_BYTES}, {STRIPE_BYTES}), "
               "H5Pset_coll_metadata_write(1)", f"in {quoted(job)} with parallel HDF5",
               "datasets begin at stripe boundaries, and metadata is written once, not by each process"),
    )
