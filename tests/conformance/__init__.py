"""Test data of others: Compose's own vectors, and real projects."""
