"""The HTTP interface: what clients send, what they get, and the routes between."""
