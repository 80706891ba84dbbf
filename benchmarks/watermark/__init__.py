"""The watermark measured: attacks, false alarms, quality and pace. Run `python -m benchmarks.watermark`."""
