"""The public API: one table of operations, its checks, and the ways in which it is served."""
