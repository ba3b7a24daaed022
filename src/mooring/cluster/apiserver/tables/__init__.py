"""Objects as answers show them: as rows of tables with kubectl's columns, as metadata, or whole.

`showing` is the door and picks the form that was asked for; `table` makes a table, out of the
`columns` and cells of each kind.
"""
