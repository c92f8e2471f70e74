"""The roofline of one layer on an accelerator."""
