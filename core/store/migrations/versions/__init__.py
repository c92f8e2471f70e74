"""The scripts, in order. One that was released is never changed."""
