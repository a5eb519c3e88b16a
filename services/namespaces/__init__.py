"""Namespaces: what is registered of them, and the limits of their callers."""
