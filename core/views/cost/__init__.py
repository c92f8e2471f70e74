"""What a calendar of runs costs, in sentences and charts."""
