"""Named cases of an engine: each says what it measured, or why it is skipped. SKV_CASE, a regular expression, chooses some."""

import os
import re
import time
import traceback


class Skip(Exception):
    """Raised by a case with the reason."""


def run_cases(*cases):
    """Runs functions by their names; the exit code."""
    chosen = re.compile(os.environ.get("SKV_CASE", ""))
    failed, skipped = [], []
    for case in cases:
        name = case.__name__
        if not chosen.search(name):
            continue
        print(f"-- {name}", flush=True)
        begin = time.monotonic()
        try:
            case()
            print(f"   ok, {time.monotonic() - begin:.0f} s", flush=True)
        except Skip as e:
            print(f"   skipped: {e}", flush=True)
            skipped.append(name)
        except (Exception, SystemExit):
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0
