"""The plugins that compare the requests of pods with the resources of nodes.

`fit` filters by free resources and scores by utilisation; `balanced` scores by how evenly the
resources are used. `strategies` are the scoring strategies of `fit`, `args` the arguments of both.
"""
