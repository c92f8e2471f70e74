"""What serving a model takes, as sentences, tables and pictures."""
