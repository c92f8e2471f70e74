"""A model that no closed form covers, built on the meta device in a process of its own and counted there."""
