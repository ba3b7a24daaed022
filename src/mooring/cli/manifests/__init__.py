"""`mooring manifests`: what has to be in a cluster for a scheduler to run there.

A configuration flows in, Kubernetes objects flow out. `wanted` completes and checks what was asked
for, `rights` derives the RBAC objects from its plugins, `workload` describes what runs, `writing`
puts objects on paper. The files in `deploy/` are made of the same parts.
"""
