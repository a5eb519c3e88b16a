"""Finding runs: the filter language (VI-01 to VI-08), its types, and what a filter means. Pure; stores render it."""
