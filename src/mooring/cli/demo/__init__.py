"""`mooring demo`: a cluster in this process, a scheduler with a plugin, and a short story.

`story` is what happens, `manifests` what is created, `plugin` the rule of our own, `screen` what is
printed of it.
"""
