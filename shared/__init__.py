"""What every Voxfarm process agrees on: vocabulary, ledger, dispatch, storage and planning."""
