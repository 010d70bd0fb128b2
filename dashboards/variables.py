"""Variables at the top of a dashboard."""

from __future__ import annotations

from typing import Any

from dashboards.panels import DATASOURCE

Json = dict[str, Any]


def datasource() -> Json:
    """The Prometheus data source. A variable works in provisioned files, whatever the name of the data source."""
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "regex": "",
            "hide": 0, "refresh": 1, "multi": False, "includeAll": False, "current": {}, "options": []}


def choice(name: str, label: str, query: str, *, everything: bool = True, text: str = "") -> Json:
    """Values of a label. With ``everything``, All can be selected and is the default."""
    made: Json = {
        "name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": query,
        "query": {"query": query, "refId": f"variable-{name}"}, "regex": "", "sort": 7, "refresh": 2, "hide": 0,
        "multi": everything, "includeAll": everything, "options": [], "skipUrlSync": False, "description": text,
    }
    if everything:
        made |= {"allValue": ".*", "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
    else:
        made["current"] = {}
    return made


FS = choice("fs", "File system", 'label_values({__name__=~"lustre_(filesystem|ost|mdt)_size_bytes"}, fs)')
POOL = choice("pool", "Pool", 'label_values(fs_target:lustre_pool_target:info{fs=~"$fs"}, pool)')
TARGET = choice("target", "Target", 'label_values({__name__=~"lustre_(ost|mdt)_size_bytes", fs=~"$fs"}, target)')
JOB = choice("jobid", "Job", 'label_values(fs_job:lustre_job_bytes:rate2m{fs=~"$fs"}, jobid)',
             text="A Lustre job, by the label jobid (see jobid_var).")
CLIENT = choice("instance", "Client", 'label_values(instance_fs:lustre_llite_bytes:rate2m{fs=~"$fs"}, instance)',
                everything=False, text="For the row One client. The other rows show all clients.")
