"""Schedules: workflows that start by calendar (LC-25 to LC-42)."""
