"""Patches: JSON patch, merge patch, strategic merge patch and server-side apply.

Input: the current object and a patch. Output: the patched object, or a refusal that says what is
wrong with the patch. `patch` is the entry point for all four types. This room owns the words *field
manager* and *field set*.
"""
