"""Files: read with care, for others wrote them, and written whole or not at all."""
