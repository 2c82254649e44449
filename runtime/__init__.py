"""The engine: SQL models, change detection, push functions, records. It knows nothing of Django."""
