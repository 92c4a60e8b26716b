-- The steps that inherit the wrong value of a place to look at first; a view keeps the columns that its table had.
ALTER TABLE {database}.mast_verdicts{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS `LookFirst.Heirs` Array(Array(UInt32)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS `LookFirst.PossibleHeirs` Array(Array(UInt32)) CODEC(ZSTD(1));

ALTER TABLE {database}.mast_verdicts {on_cluster}
    ADD COLUMN IF NOT EXISTS `LookFirst.Heirs` Array(Array(UInt32)),
    ADD COLUMN IF NOT EXISTS `LookFirst.PossibleHeirs` Array(Array(UInt32));

CREATE OR REPLACE VIEW {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;
