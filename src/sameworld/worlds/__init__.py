"""The kinds of world, how to build one and how to check one."""
