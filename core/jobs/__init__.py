"""Jobs in child processes: started, watched, cancelled, and read without trusting them."""
