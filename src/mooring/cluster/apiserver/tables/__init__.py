"""Objects as responses contain them: rows of tables with kubectl's columns, metadata, or whole.

`response_format` is the entry point and picks the requested form; `table` makes tables from the
`columns` and cells of each kind.
"""
