"""Scheduling: who is rendered next, and how long it will take. Pure: no ledger, queue or engine."""
