"""The functions of CEL that Kubernetes 1.36 offers to device selectors, by name.

A row says the types for the check, and what is called at run time if the values have these types.
Text after `CEL runtime error:` is ours, but for keys that are missing. Importing the modules fills
`FUNCTIONS`.
"""

from mooring.plugins.dynamicresources.cel.library import (
    formats,
    kubernetes,
    lists,
    operators,
    texts,
)
from mooring.plugins.dynamicresources.cel.library.lists import INCLUDES as INCLUDES
from mooring.plugins.dynamicresources.cel.library.lists import sorted_by as sorted_by
from mooring.plugins.dynamicresources.cel.library.overloads import FUNCTIONS as FUNCTIONS
from mooring.plugins.dynamicresources.cel.library.overloads import runner as runner

MODULES = (formats, kubernetes, lists, operators, texts)
