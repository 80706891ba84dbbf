"""The `voxfarm` command and the local supervisor that runs a whole farm on one machine."""
