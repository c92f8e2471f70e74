"""The constants of step time fitted to published steps, and how well they predict."""
