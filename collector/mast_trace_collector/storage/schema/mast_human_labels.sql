-- What people say of a run: the latest word of each annotator counts.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_human_labels{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Annotator LowCardinality(String),
    LabelledAt DateTime64(3),
    Outcome LowCardinality(String),
    Modes Array(LowCardinality(String)),
    DecisiveStep Nullable(UInt32),
    DecisiveAgent LowCardinality(String),
    Note String CODEC(ZSTD(1)),
    -- A person may call several steps of a run decisive.
    DecisiveSteps Array(UInt32),
    -- Given without having seen the verdict: only after such labels does a model's word count.
    Blind Bool
)
ENGINE = {replicated}ReplacingMergeTree(LabelledAt)
ORDER BY (Project, TraceId, Annotator)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_human_labels, cityHash64(TraceId)};
