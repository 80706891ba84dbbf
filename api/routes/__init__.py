"""What the API answers to, one file per subject. Handlers only translate; they decide nothing."""
