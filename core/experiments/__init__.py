"""Small experiments on this machine, each a function that measures, and the process that runs it."""
