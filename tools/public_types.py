"""Reads `basedpyright --verifytypes --outputjson`: fails if a public name is not fully typed.

basedpyright's own exit code also counts names that only third parties leave open, so the verdict is
taken from the report instead.
"""

import json
import sys


def main() -> int:
    """Print every public name without a complete type; 1 if there is one."""
    report = json.load(sys.stdin)["typeCompleteness"]
    public = [
        symbol
        for symbol in report["symbols"]
        if symbol["isExported"] and not _is_internal(symbol["name"])
    ]
    open_ended = [symbol for symbol in public if not symbol["isTypeKnown"]]
    for symbol in open_ended:
        print(f"not fully typed: {symbol['name']}")
        for diagnostic in symbol["diagnostics"]:
            print(f"    {diagnostic['message'].splitlines()[0]}")
    print(f"public names: {len(public)}, not fully typed: {len(open_ended)}")
    return 1 if open_ended or not public else 0


def _is_internal(name: str) -> bool:
    """Loggers, and plugins of ours, which are named in files and never imported."""
    return name.endswith(".log") or name.startswith(("mooring.plugins.", "mooring.cli.demo.plugin"))


if __name__ == "__main__":
    sys.exit(main())
