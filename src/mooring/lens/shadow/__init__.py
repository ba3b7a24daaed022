"""Compares another scheduler's placements with what this one would decide; writes nothing.

`mooring run --shadow` feeds it from informers. In: every change of the cluster; out: one
`Comparison` for each pod that the other scheduler binds or reports as unschedulable, and a report.
*Theirs* is the other scheduler's node, *ours* the node that this one would choose.
"""
