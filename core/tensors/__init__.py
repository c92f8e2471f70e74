"""Tensors and their storage: layout algebra, a safe reader of expressions, and traces on real torch tensors."""
