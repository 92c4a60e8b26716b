-- A model may read a run several times. A call of before belongs to the first reading; a verdict of before
-- does not tell how many there were.
ALTER TABLE {database}.mast_judge_calls{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Sample UInt8 DEFAULT 1;

ALTER TABLE {database}.mast_judge_calls {on_cluster}
    ADD COLUMN IF NOT EXISTS Sample UInt8 DEFAULT 1;

ALTER TABLE {database}.mast_verdicts{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Readings UInt16,
    ADD COLUMN IF NOT EXISTS Agreeing UInt16;

ALTER TABLE {database}.mast_verdicts {on_cluster}
    ADD COLUMN IF NOT EXISTS Readings UInt16,
    ADD COLUMN IF NOT EXISTS Agreeing UInt16;

-- A view keeps the columns that its table had when it was made.
CREATE OR REPLACE VIEW {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;
