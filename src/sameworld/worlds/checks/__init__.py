"""The parts of ``check_world``, one family of behaviours per file."""
