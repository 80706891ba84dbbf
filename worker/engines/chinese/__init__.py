"""Reading Chinese: figures and signs become characters, characters become phonemes."""
