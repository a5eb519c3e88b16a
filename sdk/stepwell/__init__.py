"""Stepwell: long-lived business processes in ordinary Python that resume where they stopped."""
