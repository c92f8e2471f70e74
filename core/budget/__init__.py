"""The budget equation: compute, time, accelerators and dollars, solved for any one of them."""
