"""What forward keeps for backward, tensor by tensor, by formulas that several implementations share."""
