"""The wire: records that the SDK and the server exchange, store and show. Imports nothing else of ours."""
