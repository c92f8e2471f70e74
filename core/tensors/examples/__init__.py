"""Questions beside a trace: overlap, walks through memory, surprises, a quiz, the lecture's claims."""
