"""One run counted under every convention, and what the sequence length does to it."""
