"""What this machine reaches: measurements of matmuls, memory, layers and links, and datasheets beside them."""
