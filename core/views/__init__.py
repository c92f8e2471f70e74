"""Results as sentences, tables, charts and reports. Nothing else in core imports it."""
