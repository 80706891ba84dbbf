"""Which waiting utterances an engine takes next. Pure: data and a clock in, a decision out."""
