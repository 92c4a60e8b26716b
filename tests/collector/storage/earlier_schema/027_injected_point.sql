-- The step after which runs with a planted fault hardly ever succeed if all up to it is kept. NULL where it is not known,
-- and for faults that an earlier version planted.
ALTER TABLE {database}.mast_injections{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS PointOfNoReturn Nullable(Int32);

ALTER TABLE {database}.mast_injections {on_cluster}
    ADD COLUMN IF NOT EXISTS PointOfNoReturn Nullable(Int32);
