-- Which versions this database has, and how its tables were asked for. Run before every migration.
CREATE DATABASE IF NOT EXISTS {database} {on_cluster};

-- reader: all
CREATE TABLE IF NOT EXISTS {database}.mast_schema_migrations{local} {on_cluster}
(
    Version UInt32,
    Name String,
    AppliedAt DateTime64(3) DEFAULT now64(3)
)
ENGINE = {replicated}ReplacingMergeTree
ORDER BY Version;

ALTER TABLE {database}.mast_schema_migrations{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Options String;

{distributed:mast_schema_migrations, Version};
