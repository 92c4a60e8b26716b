-- Into a server that has no such database; then `mast-trace migrate`, if mast-trace is newer by now.
RESTORE DATABASE mast_trace FROM File('since');
