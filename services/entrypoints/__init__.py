"""Composition roots: the only place where adapters meet services."""
