-- Prices of the models that the runs of a project have used, in US dollars per million tokens. A model has several
-- where they depend on the day, on the hour or on the input's length; of those that apply, the last one counts. A
-- model without any has an unknown price, which is never taken as 0. The row that was written last counts.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_prices{local} {on_cluster}
(
    Project LowCardinality(String),
    Model LowCardinality(String),
    Provider LowCardinality(String),
    PricedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Bands Nested
    (
        Since Date,
        Begin UInt32,
        End UInt32,
        Above Int64,
        Input Decimal(38, 12),
        CacheRead Decimal(38, 12),
        CacheWrite Decimal(38, 12),
        Output Decimal(38, 12),
        Calls Decimal(38, 12)
    )
)
ENGINE = {replicated}ReplacingMergeTree(PricedAt)
ORDER BY (Project, Model, Provider)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_prices, cityHash64(Model)};
