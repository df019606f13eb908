"""Reality, or what plays it."""
