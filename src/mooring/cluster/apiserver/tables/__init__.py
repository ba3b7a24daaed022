"""Objects as responses contain them: rows of tables with kubectl's columns, metadata, or whole.

`response_format` is the entry point; it makes tables from the columns of each kind, which are in
`cells_*.py`.
"""
