"""Small experiments that run on this machine: each a function that measures, and a process that runs it."""
