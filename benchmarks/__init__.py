"""Measurements, each printing one JSON object with its figures and bars."""
