"""CEL, the language of device selectors: text in, a function of a device out.

An expression is parsed (`syntax`), its types are checked (`checker`) and it becomes a Python
closure (`closures`), which calls the functions of `library`. A closure is 20 times as fast as any
CEL library for Python, and no device is evaluated twice for one expression (docs/adr/0019).
"""

from mooring.plugins.dynamicresources.cel.selector import CelSelector as CelSelector
from mooring.plugins.dynamicresources.cel.selector import CompileError as CompileError
from mooring.plugins.dynamicresources.cel.selector import attribute_problem as attribute_problem
from mooring.plugins.dynamicresources.cel.selector import compile_selector as compile_selector
from mooring.plugins.dynamicresources.cel.selector import device_value as device_value
from mooring.plugins.dynamicresources.cel.values import CelError as CelError
