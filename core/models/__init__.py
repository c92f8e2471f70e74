"""Transformer models: what they are made of, how many parameters that is, and how many FLOPs a token costs."""
