-- Everything, while it is written to. The name becomes a folder under the server's allowed path.
BACKUP DATABASE mast_trace TO File('full');
-- What has come since, from time to time.
BACKUP DATABASE mast_trace TO File('since') SETTINGS base_backup = File('full');
