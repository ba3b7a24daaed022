"""Why a pod is where it is, or is not, and what would change that; nothing is written to a cluster.

Input: the objects of a cluster as a `Snapshot`, from files, an API server or a running scheduler,
and a profile. Every answer is read from the scheduler's own evaluation (`decision`), on the live
cache or on a private copy of it. This room owns the words *snapshot*, *explanation*, *fact*,
*remedy* and *edit*.
"""
