"""Small scenes, worlds and recordings to try things on."""
