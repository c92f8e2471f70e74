"""What this machine reaches: measurements of matmuls, memory and layers, and datasheets beside them."""
