-- Which versions this database has. Run before every migration.
CREATE DATABASE IF NOT EXISTS {database} {on_cluster};

CREATE TABLE IF NOT EXISTS {database}.mast_schema_migrations {on_cluster}
(
    Version UInt32,
    Name String,
    AppliedAt DateTime64(3) DEFAULT now64(3)
)
ENGINE = {replicated}ReplacingMergeTree
ORDER BY Version;
