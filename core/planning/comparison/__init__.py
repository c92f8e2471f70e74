"""Several plans beside each other: as links and rows carry them, what differs, and what follows."""
