"""From segment audio to finished files. Pure: knows no queue, ledger, store or network."""
