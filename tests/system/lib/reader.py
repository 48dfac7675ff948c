# SPDX-License-Identifier: Apache-2.0
"""contrib/python/pmdpulse_read.py as a module: it is a script, in no package."""

import importlib.util
import os

SCRIPT = os.path.join(os.path.dirname(__file__), "../../../contrib/python/pmdpulse_read.py")


def load():
    spec = importlib.util.spec_from_file_location("pmdpulse_read", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
