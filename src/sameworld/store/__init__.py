"""Files to nouns and back."""
