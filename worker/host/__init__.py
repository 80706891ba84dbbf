"""The engine host: a process that owns a device and speaks for many threads over a socket."""
