"""What a measurement says, in words, rows and figures; everything a page shows of one is made here."""
