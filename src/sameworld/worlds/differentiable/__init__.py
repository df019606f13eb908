"""A world whose physics can be differentiated, in JAX."""
