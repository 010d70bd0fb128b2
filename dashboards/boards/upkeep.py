"""Scrubs of the object index, LFSCK, and quotas."""

from __future__ import annotations

from dashboards.dashboard import Row
from dashboards.panels import GREEN, ORANGE, Query, table, timeseries

ANY = 'fs=~"$fs", target=~"$target"'
RAN = 'fs=~"$fs", target=~"$target", state!="init"'

UPKEEP = Row("Checks and quotas", (
    table("State of scrub and LFSCK", "Scrub of the object index, and LFSCK by kind. Checks that never ran are "
          "omitted. For failed or crashed, see LustreCheckFailed. Partial means that a target did not take part.",
          Query(f'label_replace(max by (fs, target, state) (lustre_osd_scrub_state{{{RAN}}}), "kind", "object index", '
                f'"", "") or max by (fs, target, kind, state) (lustre_lfsck_state{{{RAN}}})'),
          unit="short", sort="State", empty="never run",
          columns={"fs": ("File system", ""), "target": ("Target", ""), "kind": ("Check", ""),
                   "state": ("State", "")}),
    timeseries("Repairs by scrub and LFSCK", "Entries that the current or last run repaired, or could not repair. "
               "Any value means earlier damage by disks or a crash.",
               Query(f"max by (fs, target) (lustre_osd_scrub_repaired_objects{{{ANY}}}) > 0",
                     "{{target}} object index: repaired"),
               Query(f"max by (fs, target) (lustre_osd_scrub_failed_objects{{{ANY}}}) > 0",
                     "{{target}} object index: not repaired"),
               Query(f"max by (fs, target, kind) (lustre_lfsck_repaired_items{{{ANY}}}) > 0",
                     "{{target}} {{kind}}: repaired"),
               Query(f"sum by (fs, target, kind) (max by (fs, target, kind, phase) (lustre_lfsck_failed_items{{{ANY}}})"
                     ") > 0", "{{target}} {{kind}}: not repaired"),
               unit="short", empty="none"),
    timeseries("Targets that enforce quotas", "Targets that enforce quotas, by resource and type. On the others, "
               "users can exceed their limits (lctl conf_param FS.quota.ost).",
               Query(f"sum by (fs, resource, type) (max by (fs, target, resource, type) "
                     f"(lustre_quota_slave_enforced{{{ANY}}}))", "{{fs}} {{resource}} by {{type}}"),
               unit="short", empty="not reported"),
    timeseries("Targets with outdated quotas", "Targets without a connection to the quota master, or with outdated "
               "limits. If not 0 for minutes, check the connection to the first metadata target.",
               Query(f"sum by (fs, resource) (1 - max by (fs, target, resource) "
                     f"(lustre_quota_slave_connected{{{ANY}}}))", "{{fs}} {{resource}}: not connected"),
               Query(f"sum by (fs, resource, type) (1 - max by (fs, target, resource, type) "
                     f"(lustre_quota_slave_up_to_date{{{ANY}}}))", "{{fs}} {{resource}} by {{type}}: outdated limits"),
               unit="short", empty="not reported", steps=((None, GREEN), (1, ORANGE))),
), closed=True)
