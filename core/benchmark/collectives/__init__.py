"""How fast accelerators exchange: collectives timed with torch.distributed, on one or several nodes.

``torchrun --nproc-per-node 8 -m core.benchmark.collectives --out result.json`` measures and writes one JSON file;
what is read, said and drawn of such a file needs neither torch nor a second rank.
"""
