"""The service: an OpenAI-compatible endpoint that answers or abstains, its review queue, audits and alarms."""
