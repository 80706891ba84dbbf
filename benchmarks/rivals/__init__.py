"""Other ways to put sentences through Celery, each on the same simulated device as ours."""
