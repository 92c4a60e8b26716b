-- The user and the session of runs whose spans were left out, so that groups still count them. GroupsKnown is false for
-- runs that an earlier version left out: their spans are gone, and nobody knows whether they named any.
ALTER TABLE {database}.mast_left_out{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS UserId String CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS ConversationId String CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS GroupsKnown Bool;

ALTER TABLE {database}.mast_left_out {on_cluster}
    ADD COLUMN IF NOT EXISTS UserId String,
    ADD COLUMN IF NOT EXISTS ConversationId String,
    ADD COLUMN IF NOT EXISTS GroupsKnown Bool;
