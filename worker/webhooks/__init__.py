"""Sending webhooks: what is sent, signed how, to which address, and what an answer means."""
