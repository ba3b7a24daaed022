"""What the outside sees while we run: logs and metrics.

Facts flow in from every room, numbers and lines flow out. This room imports nothing of ours, so
that everybody may import it. It owns the words *metric*, *bucket* and *label*.
"""
