"""Plans: a run as data, what it takes, and plans swept, compared, scheduled and paid."""
