-- The judges that share this database, each with one row. Seen is the server's time of its last sign of life, Gone says
-- that it has ended, Reading holds the runs that its model is reading. Runs are divided among those that live.
-- reader: none
CREATE TABLE IF NOT EXISTS {database}.mast_workers{local} {on_cluster}
(
    WorkerId String,
    Seen DateTime64(3),
    Gone Bool,
    Reading Array(String)
)
ENGINE = {replicated}ReplacingMergeTree(Seen)
ORDER BY WorkerId
TTL toDateTime(Seen) + toIntervalHour(1)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_workers, cityHash64(WorkerId)};
