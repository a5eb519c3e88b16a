"""One handler per operation: checks the request, then asks the engine. Whatever transport it came by."""
