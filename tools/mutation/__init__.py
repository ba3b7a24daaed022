"""The parts of tools/mutants.py: finding mutants, choosing some of them, testing each in a copy.

A mutant is the source with one small change. `finding` makes them from the syntax tree as edits of
the text, `sampling` chooses which are tried, `running` runs the tests on one at a time.
"""
