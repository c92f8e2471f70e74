"""Programs that users paste, run by PyTorch in a process without files, network, or other processes."""
