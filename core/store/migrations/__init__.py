"""Versions of the database, each a script that makes it from the one before."""
