"""English text made safe to read aloud: whatever a reader would drop becomes words first. Pure."""
