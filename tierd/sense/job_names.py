"""Whether clients name jobs. By default they do not: then servers count nothing by job, and nothing can be found."""

from __future__ import annotations

from lustre.parameters import Tree


def unnamed(tree: Tree) -> str:
    """Why no job has a name, as far as the client on this node tells; "" where it names them, or does not say."""
    if (tree.read("jobid_var") or b"").strip() != b"disable":
        return ""
    return ("Lustre counts nothing by job, for jobid_var is 'disable' on this node: nothing can be found. On the MGS: "
            "lctl set_param -P jobid_var=procname_uid, or the variable of the batch system (SLURM_JOB_ID)")
