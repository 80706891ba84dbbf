"""A keyed, inaudible mark that says which deliverable a recording comes from, and its detector."""
