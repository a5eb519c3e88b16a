"""Batch operations: one thing done to many workflows, at a bounded rate, whatever dies in between."""
