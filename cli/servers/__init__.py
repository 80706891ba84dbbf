"""The servers beneath an embedded farm: Valkey and SeaweedFS, on loopback, from their wheels."""
