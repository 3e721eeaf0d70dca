"""The plan, topic by topic."""
