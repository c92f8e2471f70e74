"""FLOPs of a model by layer, in sentences and charts."""
