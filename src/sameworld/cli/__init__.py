"""The command ``sameworld``."""
