"""The HTTP front door. Knows the ledger and the store; never imports a worker or an engine."""
