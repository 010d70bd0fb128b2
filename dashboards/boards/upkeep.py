"""What keeps targets sound and users within their limits: scans of the object index, LFSCK, quotas."""

from __future__ import annotations

from dashboards.dashboard import Row
from dashboards.panels import GREEN, ORANGE, Query, table, timeseries

ANY = 'fs=~"$fs", target=~"$target"'
TOLD = 'fs=~"$fs", target=~"$target", state!="init"'

UPKEEP = Row("Checks and quotas", (
    table("State of checks", "Scans of the object index, and LFSCK by kind; what was never run is left out. Failed or "
          "crashed: see LustreCheckFailed. Partial: some target did not take part.",
          Query(f'label_replace(max by (fs, target, state) (lustre_osd_scrub_state{{{TOLD}}}), "kind", "object index", '
                f'"", "") or max by (fs, target, kind, state) (lustre_lfsck_state{{{TOLD}}})'),
          unit="short", sort="State", empty="none was run",
          columns={"fs": ("File system", ""), "target": ("Target", ""), "kind": ("Check", ""),
                   "state": ("State", "")}),
    timeseries("What checks found", "In the run under way or the last one: entries that were mended, and those that "
               "could not be. Anything here says that something went wrong before: disks, or a crash.",
               Query(f"max by (fs, target) (lustre_osd_scrub_repaired_objects{{{ANY}}}) > 0",
                     "{{target}} object index: mended"),
               Query(f"max by (fs, target) (lustre_osd_scrub_failed_objects{{{ANY}}}) > 0",
                     "{{target}} object index: not mended"),
               Query(f"max by (fs, target, kind) (lustre_lfsck_repaired_items{{{ANY}}}) > 0",
                     "{{target}} {{kind}}: mended"),
               Query(f"sum by (fs, target, kind) (max by (fs, target, kind, phase) (lustre_lfsck_failed_items{{{ANY}}})"
                     ") > 0", "{{target}} {{kind}}: not mended"),
               unit="short", empty="nothing"),
    timeseries("Quotas: targets that enforce", "By what is limited and for whom. Fewer than there are targets: users "
               "may go beyond their limits there (lctl conf_param FS.quota.ost).",
               Query(f"sum by (fs, resource, type) (max by (fs, target, resource, type) "
                     f"(lustre_quota_slave_enforced{{{ANY}}}))", "{{fs}} {{resource}} by {{type}}"),
               unit="short", empty="not told"),
    timeseries("Quotas: targets behind", "Targets without a connection to the quota master, or with older limits than "
               "its own. Not 0 for minutes: look at the connection to the first metadata target.",
               Query(f"sum by (fs, resource) (1 - max by (fs, target, resource) "
                     f"(lustre_quota_slave_connected{{{ANY}}}))", "{{fs}} {{resource}}: not connected"),
               Query(f"sum by (fs, resource, type) (1 - max by (fs, target, resource, type) "
                     f"(lustre_quota_slave_up_to_date{{{ANY}}}))", "{{fs}} {{resource}} by {{type}}: older limits"),
               unit="short", empty="not told", steps=((None, GREEN), (1, ORANGE))),
), closed=True)
