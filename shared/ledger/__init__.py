"""The SQL ledger: the record of what has been done. Knows no broker, no store, no engine."""
