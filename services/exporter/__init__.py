"""Exports: histories of closed runs written as objects, in the background, whatever dies in between."""
