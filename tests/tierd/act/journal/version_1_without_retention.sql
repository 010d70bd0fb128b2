-- The tables as tierd made them before retention: application_id 0x74696572, user_version 1.
CREATE TABLE findings (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, aggressor TEXT NOT NULL, victim TEXT NOT NULL,
    sentence TEXT NOT NULL, evidence TEXT NOT NULL, targets TEXT NOT NULL, directories TEXT NOT NULL,
    subject TEXT NOT NULL DEFAULT '');
CREATE TABLE actions (
    id INTEGER PRIMARY KEY, finding INTEGER REFERENCES findings(id), kind TEXT NOT NULL, place BLOB NOT NULL,
    layout_before TEXT, layout_after TEXT, size_bytes INTEGER NOT NULL, reason TEXT NOT NULL, dry_run INTEGER NOT NULL,
    intended_at REAL NOT NULL, ended_at REAL, outcome TEXT, detail TEXT, fid TEXT);
CREATE TABLE positions (mdt TEXT PRIMARY KEY, record INTEGER NOT NULL);
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE told (finding INTEGER NOT NULL REFERENCES findings(id), time REAL NOT NULL,
    sentence TEXT NOT NULL);
CREATE TABLE judgements (
    finding INTEGER PRIMARY KEY REFERENCES findings(id), time REAL NOT NULL, kind TEXT NOT NULL, pool TEXT NOT NULL,
    size_bytes INTEGER NOT NULL, verdict TEXT NOT NULL, won_back REAL NOT NULL,
    usual REAL NOT NULL, contended REAL NOT NULL, after REAL NOT NULL);
CREATE TABLE samples (time REAL NOT NULL, series TEXT NOT NULL, value REAL NOT NULL);
CREATE INDEX samples_by_time ON samples(time);
CREATE INDEX findings_by_time ON findings(time);
CREATE INDEX actions_by_time ON actions(intended_at);
CREATE INDEX told_of ON told(finding);
CREATE INDEX actions_of ON actions(finding);
CREATE INDEX undone_places ON actions(place, ended_at) WHERE outcome = 'undone';
CREATE INDEX unfinished ON actions(id) WHERE outcome IS NULL;
CREATE INDEX actions_by_end ON actions(ifnull(ended_at, 1e18));
CREATE INDEX actions_of_file ON actions(fid);
CREATE TABLE waiting_moves (
    id INTEGER PRIMARY KEY, place BLOB NOT NULL UNIQUE, finding INTEGER NOT NULL REFERENCES findings(id),
    key TEXT NOT NULL, pool TEXT NOT NULL, size_bytes INTEGER NOT NULL, fid TEXT, reason TEXT NOT NULL,
    fs TEXT NOT NULL, dry_run INTEGER NOT NULL, since REAL NOT NULL);
CREATE TABLE waiting_orders (
    id INTEGER PRIMARY KEY, direction TEXT NOT NULL, path BLOB NOT NULL, by TEXT NOT NULL, kind TEXT NOT NULL,
    reason TEXT NOT NULL, most_files INTEGER NOT NULL, most_bytes INTEGER NOT NULL, fid TEXT, fs TEXT NOT NULL,
    dry_run INTEGER NOT NULL, since REAL NOT NULL);
