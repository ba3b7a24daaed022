"""The plugins that weigh what pods ask for against what nodes have.

`fit` refuses nodes without room and scores by how full a node gets; `balanced` scores by how evenly
its resources are used. `strategies` holds the arithmetic of fullness, `args` what both can be told.
"""
