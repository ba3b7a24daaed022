"""Custom resources: CustomResourceDefinitions, and the objects of the kinds that they define.

Input: a definition, as clients write it. Output: a `CustomResource` that the rest of the server
serves as any other `Resource`; where the kinds of schema.txt have types, defaults and rules, a
custom one has its structural schema. `catalogue.py` keeps those of one server, `lifecycle.py` says
in the status of a definition what became of it.
"""
