"""What the API answers: the stable JSON shapes, and how they are made from the ledger's records.

Times are RFC 3339 in UTC, durations seconds, sizes bytes. Knows no HTTP and no SQL.
"""
