"""Benchmarks that ship with the code they measure."""
