"""The operations that an expression may use: one row each, and the guards of their sizes."""
