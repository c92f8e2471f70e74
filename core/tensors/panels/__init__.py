"""Questions beside a trace: overlap, walks through memory, surprises, checked names, a quiz, the lecture's claims."""
