"""The whole space of parallel layouts of a model on a cluster: which fit, which are fastest, and which are neither."""
