"""The RPCs by subject; each module exports ``HANDLERS``, which ``server`` puts into its table."""
