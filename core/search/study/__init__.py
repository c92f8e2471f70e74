"""Studies: searches over grids of models, clusters, batches and lengths, here or on many machines."""
