"""ASGI layers around the app, one idea per file. They know HTTP, not jobs."""
