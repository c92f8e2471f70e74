"""Loss scaling and fp8 scaling over the steps of a run."""
