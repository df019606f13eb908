"""A scene compiled: what worlds that compute physics share, whatever integrates it."""
