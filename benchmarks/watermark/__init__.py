"""The watermark measured: attacks, false alarms, copies, quality and cost."""
