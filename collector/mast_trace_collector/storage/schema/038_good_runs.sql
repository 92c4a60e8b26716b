-- A place that is unlike good runs names one of them, and the step there that shows it.
ALTER TABLE {database}.mast_verdicts{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS `LookFirst.GoodRun` Array(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS `LookFirst.GoodStep` Array(UInt32);

ALTER TABLE {database}.mast_verdicts {on_cluster}
    ADD COLUMN IF NOT EXISTS `LookFirst.GoodRun` Array(String),
    ADD COLUMN IF NOT EXISTS `LookFirst.GoodStep` Array(UInt32);

-- A view keeps the columns that its table had when it was made.
CREATE OR REPLACE VIEW {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;
