"""Speech engines, one module each: listed by entry points, loaded only inside an engine host."""
