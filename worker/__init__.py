"""The processes that do the work: plan, render, assemble, deliver, and the scheduler."""
