"""Comparing what the ledger, the store and the manifest say of one job."""
