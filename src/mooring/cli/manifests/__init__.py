"""`mooring manifests`: the objects a scheduler needs in a cluster, from its configuration.

`options` completes and checks what was asked for, `rbac_objects` derives the RBAC objects from the
plugins, `workload` describes what runs, `writing` prints objects as YAML or JSON. The files in
`deploy/` are made of the same parts.
"""
