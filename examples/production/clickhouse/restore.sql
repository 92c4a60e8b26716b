-- Into a server that has no such database; then `mast-trace migrate`, if mast-trace is newer by now, and
-- `mast-trace erase --again tombstones.jsonl --yes` for what was erased since the backup.
RESTORE DATABASE mast_trace FROM File('since');
