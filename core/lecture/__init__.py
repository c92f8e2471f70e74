"""The lecture's claims, each with the function that checks it."""
