"""Plans as files to keep: a document, tables, data, and a program; without any page."""
