"""The cluster as columns.

Objects flow in from the event handlers, read-only views flow out to the cycle. What changes about
the cluster changes here and nowhere else. This room owns the words *row*, *column*, *assume*,
*forget*, *journal* and *snapshot*.
"""
