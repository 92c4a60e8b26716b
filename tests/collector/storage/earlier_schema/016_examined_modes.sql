-- What a verdict has looked for, and whether its probabilities were measured on runs like its own. Verdicts
-- of before do not say: their Examined is empty, and they count in no share.
ALTER TABLE {database}.mast_verdicts{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Examined Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS Calibrated Bool;

ALTER TABLE {database}.mast_verdicts {on_cluster}
    ADD COLUMN IF NOT EXISTS Examined Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS Calibrated Bool;

-- Bit i is set for the i-th of the fourteen failure modes, as in ModeBits.
ALTER TABLE {database}.mast_findings{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS ExaminedBits UInt16,
    ADD COLUMN IF NOT EXISTS Calibrated Bool;

ALTER TABLE {database}.mast_findings {on_cluster}
    ADD COLUMN IF NOT EXISTS ExaminedBits UInt16,
    ADD COLUMN IF NOT EXISTS Calibrated Bool;

-- A view keeps the columns that its table had when it was made.
CREATE OR REPLACE VIEW {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;

ALTER TABLE {database}.mast_findings_mv {on_cluster} MODIFY QUERY
SELECT {finding_columns}, Kind, Calibrated,
    toUInt16(arraySum(code -> bitShiftLeft(toUInt16(1),
        indexOf(['1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '2.3', '2.4', '2.5', '2.6', '3.1', '3.2', '3.3'],
            code) - 1),
        arrayDistinct(arrayFilter(code -> code IN ('1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '2.3', '2.4',
            '2.5', '2.6', '3.1', '3.2', '3.3'), arrayMap(code -> toString(code), Examined))))) AS ExaminedBits
FROM {database}.mast_verdicts{local};
