"""The Temporal protocol in front of the engine: unmodified Temporal SDKs, CLI and UI connect. It only translates.

docs/architecture/temporal-gateway.md is the map of these files.
"""
