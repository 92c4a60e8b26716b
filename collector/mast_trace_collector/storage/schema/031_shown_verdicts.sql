-- The places to look at first, and the verdict as it is shown: a row of mast_findings says what replays have left
-- of its verdict. The judge's verdict itself stays in mast_verdicts.
ALTER TABLE {database}.mast_verdicts{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS `LookFirst.Step` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.Agent` Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Basis` Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Why` Array(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Quotes` Array(Array(String)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS `LookFirst.SpanId` Array(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS `LookFirst.ReachesAnswer` Array(Bool),
    ADD COLUMN IF NOT EXISTS `LookFirst.Right` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.Cases` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.PlantedRight` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.PlantedCases` Array(UInt32);

ALTER TABLE {database}.mast_verdicts {on_cluster}
    ADD COLUMN IF NOT EXISTS `LookFirst.Step` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.Agent` Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Basis` Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Why` Array(String),
    ADD COLUMN IF NOT EXISTS `LookFirst.Quotes` Array(Array(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.SpanId` Array(String),
    ADD COLUMN IF NOT EXISTS `LookFirst.ReachesAnswer` Array(Bool),
    ADD COLUMN IF NOT EXISTS `LookFirst.Right` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.Cases` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.PlantedRight` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.PlantedCases` Array(UInt32);

-- ShownAt is 0 in the row that the view below makes of a verdict. Who stores a conclusion of replays, or a verdict
-- on a run that has one, adds a row of the same JudgedAt that shows it: among these the newest ShownAt counts.
ALTER TABLE {database}.mast_findings{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS DecisiveSpanId String CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Step` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.Agent` Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Basis` Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Why` Array(String) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Confirmation LowCardinality(String),
    ADD COLUMN IF NOT EXISTS ShownAt DateTime64(6) DEFAULT 0;

ALTER TABLE {database}.mast_findings {on_cluster}
    ADD COLUMN IF NOT EXISTS DecisiveSpanId String,
    ADD COLUMN IF NOT EXISTS `LookFirst.Step` Array(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.Agent` Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Basis` Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS `LookFirst.Why` Array(String),
    ADD COLUMN IF NOT EXISTS Confirmation LowCardinality(String),
    ADD COLUMN IF NOT EXISTS ShownAt DateTime64(6) DEFAULT 0;

-- A view keeps the columns that its table had when it was made.
CREATE OR REPLACE VIEW {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;

ALTER TABLE {database}.mast_findings_mv {on_cluster} MODIFY QUERY
SELECT {finding_columns}, Kind, Calibrated, {examined_bits} AS ExaminedBits,
    DecisiveSpanId, `LookFirst.Step`, `LookFirst.Agent`, `LookFirst.Basis`, `LookFirst.Why`
FROM {database}.mast_verdicts{local};

-- Steps of decisive errors that are stored already. The time is later than that of the row that is there, and earlier
-- than that of any conclusion.
INSERT INTO {database}.mast_findings ({finding_columns}, Kind, Calibrated, ExaminedBits, DecisiveSpanId, ShownAt)
SELECT {finding_columns}, Kind, Calibrated, {examined_bits}, DecisiveSpanId, toDateTime64(1, 6)
FROM {database}.mast_verdicts
WHERE isNotNull(DecisiveStep)
SETTINGS max_partitions_per_insert_block = 0, distributed_foreground_insert = 1;
