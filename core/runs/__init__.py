"""What published runs took, under one convention, and what they lead one to expect."""
