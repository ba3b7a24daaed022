"""Random scheduling scenarios, one module per part of Kubernetes that they are made of.

`families.FAMILIES` maps a name to a function that throws `Dice` and returns a scenario: a pod, a
cluster and perhaps a profile, in the form an API server stores. Vocabularies are small on purpose,
so that selectors, ports, taints and priorities collide. The same seed gives the same scenarios.
"""
