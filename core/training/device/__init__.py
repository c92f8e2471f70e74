"""Memory of one accelerator under a layout: states, activations, buffers, runtime."""
