"""Fine-tuning and what comes after it: post-training beside the plan."""
