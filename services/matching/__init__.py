"""Task queues: brings hints that work waits together with workers that ask for it."""
