"""Napkin's library: what LLM training costs in bits, bytes, FLOPs, seconds and dollars, and why.

Pure functions and frozen dataclasses; importing it loads neither torch nor streamlit.
"""
