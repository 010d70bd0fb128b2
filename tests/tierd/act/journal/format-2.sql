BEGIN TRANSACTION;
CREATE TABLE act_directories (place BLOB PRIMARY KEY) WITHOUT ROWID;
INSERT INTO "act_directories" VALUES(X'2F70726F6A');
CREATE TABLE actions (
    id INTEGER PRIMARY KEY, finding INTEGER REFERENCES findings(id), kind TEXT NOT NULL, place BLOB NOT NULL,
    layout_before TEXT, layout_after TEXT, size_bytes INTEGER NOT NULL, reason TEXT NOT NULL, dry_run INTEGER NOT NULL,
    intended_at REAL NOT NULL, ended_at REAL, outcome TEXT NOT NULL DEFAULT 'under way',
    detail TEXT NOT NULL DEFAULT '', fid TEXT, verdict TEXT NOT NULL DEFAULT '', undoes INTEGER REFERENCES actions(id));
INSERT INTO "actions" VALUES(1,1,'set-default-layout',X'2F70726F6A','lmm_stripe_count:  2
lmm_stripe_size:   4194304
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: -1
lmm_pool:          hdd
','lcm_layout_gen:    0
lcm_mirror_count:  1
lcm_entry_count:   2
components:
  - lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1048576
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   0
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
      lmm_pool:          flash
  - lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 1048576
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   0
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
      lmm_pool:          hdd
',0,'because',0,2.0,4.0,'undoing','','[0x200000401:0x1:0x0]','',NULL);
INSERT INTO "actions" VALUES(2,1,'migrate',X'2F70726F6A2FFFFE20277827','lmm_stripe_count:  2
lmm_stripe_size:   4194304
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: -1
lmm_pool:          hdd
','lcm_layout_gen:    0
lcm_mirror_count:  1
lcm_entry_count:   2
components:
  - lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1048576
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   0
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
      lmm_pool:          flash
  - lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 1048576
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   0
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
      lmm_pool:          hdd
',700,'because',0,2.0,NULL,'under way','','[0x200000401:0x5:0x0]','',NULL);
INSERT INTO "actions" VALUES(3,1,'migrate',X'2F70726F6A2F646F6E65','lmm_stripe_count:  2
lmm_stripe_size:   4194304
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: -1
lmm_pool:          hdd
','lcm_layout_gen:    0
lcm_mirror_count:  1
lcm_entry_count:   2
components:
  - lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1048576
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   0
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
      lmm_pool:          flash
  - lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 1048576
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   0
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
      lmm_pool:          hdd
',700,'because',0,2.0,3.0,'done','','[0x200000401:0x6:0x0]','',NULL);
INSERT INTO "actions" VALUES(4,1,'set-default-striping',X'2F64697273',NULL,'lmv_stripe_count:  2
lmv_stripe_offset: -1
lmv_hash_type:     crush
lmv_max_inherit:   1
lmv_max_inherit_rr: 0
',0,'spread',1,5.0,6.0,'dry-run','',NULL,'',NULL);
CREATE TABLE findings (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, aggressor TEXT NOT NULL, victim TEXT NOT NULL,
    sentence TEXT NOT NULL, evidence TEXT NOT NULL, targets TEXT NOT NULL, directories TEXT NOT NULL,
    subject TEXT NOT NULL, ended_at REAL);
INSERT INTO "findings" VALUES(1,1.0,'noisy-neighbour','m','s','slows','{"victim_usual_bytes_per_second": 66000000.0, "victim_bytes_per_second": 44000000.0, "slowdown": 1.5, "loss_low": 0.28, "loss_high": 0.38, "loss_probability": 0.99, "carrier": 1.0, "aggressor_came_at": 40.0, "aggressor_operations_per_second": 40.0, "aggressor_operations_share": 0.4, "aggressor_bytes_per_second": 20971520.0, "aggressor_mean_rpc_bytes": 1048576.0, "aggressor_largest_rpc_bytes": 1048576.0, "aggressor_read_share": 0.0, "aggressor_files_per_second": 20.0, "aggressor_bytes_per_file": 1048576.0}','["lustre-OST0002"]','["/proj", "/proj/\udcff\udcfe ''x''"]','',NULL);
INSERT INTO "findings" VALUES(2,10.0,'request','root','','root asked to promote /proj','{}','[]','[]','',NULL);
INSERT INTO "findings" VALUES(3,11.0,'drain','root','','root asked to drain lustre-OST0004','{}','["lustre-OST0004"]','[]','',NULL);
CREATE TABLE judgements (
    finding INTEGER PRIMARY KEY REFERENCES findings(id), time REAL NOT NULL, kind TEXT NOT NULL, pool TEXT NOT NULL,
    size_bytes INTEGER NOT NULL, verdict TEXT NOT NULL, won_back REAL NOT NULL,
    usual REAL NOT NULL, contended REAL NOT NULL, after REAL NOT NULL, low REAL, high REAL);
INSERT INTO "judgements" VALUES(1,9.0,'noisy-neighbour','flash',1048576,'helped',0.8,100.0,60.0,95.0,0.5,0.9);
CREATE TABLE positions (mdt TEXT PRIMARY KEY, record INTEGER NOT NULL);
INSERT INTO "positions" VALUES('MDT0000',17);
CREATE TABLE rates (step INTEGER NOT NULL, kind TEXT NOT NULL, time INTEGER NOT NULL,
    names BLOB NOT NULL, numbers BLOB NOT NULL);
CREATE TABLE removed_by_day (
    day INTEGER NOT NULL, what TEXT NOT NULL, kind TEXT NOT NULL, outcome TEXT NOT NULL, count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL, PRIMARY KEY (day, what, kind, outcome)) WITHOUT ROWID;
CREATE TABLE removed_by_finding (
    finding INTEGER, kind TEXT NOT NULL, outcome TEXT NOT NULL, count INTEGER NOT NULL, size_bytes INTEGER NOT NULL,
    PRIMARY KEY (finding, kind, outcome));
CREATE TABLE samples (time REAL NOT NULL, series TEXT NOT NULL, value REAL NOT NULL);
INSERT INTO "samples" VALUES(9.0,'case 1',5.0);
INSERT INTO "samples" VALUES(9.0,'usual',6.0);
CREATE TABLE scheduler_jobs (
    job TEXT PRIMARY KEY, number INTEGER NOT NULL, name TEXT NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL,
    partition TEXT NOT NULL, directory BLOB NOT NULL, time REAL NOT NULL);
CREATE TABLE stagings (
    id INTEGER PRIMARY KEY, job TEXT NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, direction TEXT NOT NULL,
    path BLOB NOT NULL, deadline_at REAL NOT NULL, max_files INTEGER NOT NULL, max_bytes INTEGER NOT NULL,
    created_at REAL NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, finding INTEGER NOT NULL, files INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL, in_place INTEGER NOT NULL, dropped INTEGER NOT NULL, left_out TEXT NOT NULL,
    ended_at REAL NOT NULL);
INSERT INTO "stagings" VALUES(1,'17',1001,100,'promote',X'2F70726F6A2FFFFE20277827',1000000000.0,1000,1048576,12.0,'alice','moving',2,2,1400,1,0,'{"user alice may not read the file": 3}',0.0);
INSERT INTO "stagings" VALUES(2,'18',1001,100,'demote',X'2F70726F6A2F6F7574',50.0,1000,1048576,12.0,'','expired',0,0,0,0,4,'{}',51.0);
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "state" VALUES('drains','[{"target": "lustre-OST0004", "by": "root", "begun_at": 11.0, "finding": 3, "phase": "running", "preview": false, "passes": 2, "after": "/proj/a", "pass_begun_at": 0.0, "wait_until": 0.0, "examined": 9, "found_files": 4, "found_bytes": 5242880, "movable": 3, "queued": 3, "arrived": 0, "left": {"mirrored": {"sentence": "the file has mirrors", "count": 1, "examples": ["/proj/\udcff\udcfe ''x''"]}}, "used_bytes_at_begin": 77, "limits": {"MDT0000": 20000}, "trouble": ""}, {"target": "lustre-OST0005", "by": "root", "begun_at": 1.0, "finding": 0, "phase": "previewed", "preview": true, "passes": 1, "after": "", "pass_begun_at": 0.0, "wait_until": 0.0, "examined": 0, "found_files": 0, "found_bytes": 0, "movable": 0, "queued": 0, "arrived": 0, "left": {}, "used_bytes_at_begin": 0, "limits": {}, "trouble": ""}]');
INSERT INTO "state" VALUES('paused','night');
INSERT INTO "state" VALUES('act_directories_until','1');
CREATE TABLE told (finding INTEGER NOT NULL REFERENCES findings(id), time REAL NOT NULL,
    sentence TEXT NOT NULL);
INSERT INTO "told" VALUES(1,3.0,'SET default layout');
CREATE TABLE waiting_moves (
    id INTEGER PRIMARY KEY, place BLOB NOT NULL UNIQUE, finding INTEGER NOT NULL REFERENCES findings(id),
    key TEXT NOT NULL, pool TEXT NOT NULL, size_bytes INTEGER NOT NULL, fid TEXT, reason TEXT NOT NULL,
    fs TEXT NOT NULL, dry_run INTEGER NOT NULL, since REAL NOT NULL);
INSERT INTO "waiting_moves" VALUES(1,X'2F70726F6A2FFFFE20277827',2,'["request", "root", "/proj"]','flash',700,'[0x200000401:0x5:0x0]','requested by root','lustre',0,10.0);
INSERT INTO "waiting_moves" VALUES(2,X'2F70726F6A2F62',2,'["request", "root", "/proj"]','flash',700,'[0x200000401:0x5:0x0]','requested by root','lustre',0,10.0);
INSERT INTO "waiting_moves" VALUES(3,X'2F70726F6A2F647261696E6564',3,'["drain", "root", "lustre-OST0004"]','flash',700,'[0x200000401:0x5:0x0]','because','lustre',0,12.0);
CREATE TABLE waiting_orders (
    id INTEGER PRIMARY KEY, direction TEXT NOT NULL, path BLOB NOT NULL, by TEXT NOT NULL, kind TEXT NOT NULL,
    reason TEXT NOT NULL, most_files INTEGER NOT NULL, most_bytes INTEGER NOT NULL, fid TEXT, fs TEXT NOT NULL,
    dry_run INTEGER NOT NULL, since REAL NOT NULL);
INSERT INTO "waiting_orders" VALUES(1,'demote',X'2F70726F6A2FFFFE20277827','hood (submit)','submission','old rule',1,1099511627776,'[0x200000401:0x9:0x0]','lustre',0,13.0);
INSERT INTO "waiting_orders" VALUES(2,'promote',X'2F70726F6A2F63','root','request','',1000,1099511627776,NULL,'lustre',0,13.0);
CREATE INDEX samples_by_time ON samples(time);
CREATE INDEX findings_by_time ON findings(time);
CREATE INDEX actions_by_time ON actions(intended_at);
CREATE INDEX told_of ON told(finding);
CREATE INDEX actions_of ON actions(finding);
CREATE INDEX undone_places ON actions(place, ended_at) WHERE outcome = 'undone';
CREATE INDEX unfinished ON actions(id) WHERE outcome = 'under way';
CREATE INDEX undoing ON actions(id) WHERE outcome = 'undoing';
CREATE INDEX default_layouts ON actions(id)
    WHERE kind = 'set-default-layout' AND outcome = 'done';
CREATE INDEX default_stripings ON actions(intended_at) WHERE kind = 'set-default-striping';
CREATE INDEX actions_by_end ON actions(ifnull(ended_at, 1e18));
CREATE INDEX actions_of_file ON actions(fid);
CREATE INDEX open_stagings ON stagings(id) WHERE ended_at = 0;
CREATE INDEX stagings_of_job ON stagings(job);
CREATE INDEX scheduler_jobs_by_number ON scheduler_jobs(number);
CREATE INDEX scheduler_jobs_by_name ON scheduler_jobs(name, user);
CREATE INDEX findings_by_aggressor ON findings(aggressor);
CREATE INDEX findings_by_victim ON findings(victim);
CREATE INDEX judgements_by_time ON judgements(time);
CREATE INDEX judgements_by_class ON judgements(kind, pool, size_bytes, time);
CREATE INDEX waiting_moves_of ON waiting_moves(finding);
CREATE INDEX waiting_moves_by_key ON waiting_moves(key);
CREATE UNIQUE INDEX rates_by_step ON rates(step, kind, time);
CREATE INDEX rates_by_time ON rates(time, step);
COMMIT;
