"""Whether the promise still holds: monitors, canaries, and what they say on the status page."""
