"""What a calendar of runs costs: rented, reserved or owned, with storage and network."""
