"""Measuring an engine, and choosing from the figures how its tiers are to be batched."""
