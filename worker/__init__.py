"""The processes that do the work: plan, synthesise, assemble, deliver, and the scheduler behind them."""
