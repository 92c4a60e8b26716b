-- A model's word counts after labels that people gave without having seen the verdict. Of labels of before nobody
-- knows it. A verdict keeps the step that its model names itself, whatever became of it, and the prompt.
ALTER TABLE {database}.mast_human_labels{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Blind Bool;

ALTER TABLE {database}.mast_human_labels {on_cluster}
    ADD COLUMN IF NOT EXISTS Blind Bool;

ALTER TABLE {database}.mast_verdicts{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Prompt LowCardinality(String),
    ADD COLUMN IF NOT EXISTS ModelStep Nullable(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.Heirs` Array(Array(UInt32)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS `LookFirst.PossibleHeirs` Array(Array(UInt32)) CODEC(ZSTD(1));

ALTER TABLE {database}.mast_verdicts {on_cluster}
    ADD COLUMN IF NOT EXISTS Prompt LowCardinality(String),
    ADD COLUMN IF NOT EXISTS ModelStep Nullable(UInt32),
    ADD COLUMN IF NOT EXISTS `LookFirst.Heirs` Array(Array(UInt32)),
    ADD COLUMN IF NOT EXISTS `LookFirst.PossibleHeirs` Array(Array(UInt32));

-- A view keeps the columns that its table had when it was made.
CREATE OR REPLACE VIEW {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;
