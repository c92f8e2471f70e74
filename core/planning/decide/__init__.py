"""Which run goes to which offer of accelerators, in which order, and what follows: days, cost, power."""
