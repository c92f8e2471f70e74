"""Every formula of the product, by name."""

from __future__ import annotations

import importlib
import pkgutil

import core
from core.formula import all_formulas

for _module in pkgutil.walk_packages(core.__path__, "core."):
    if not _module.name.endswith("worker"):
        importlib.import_module(_module.name)

FORMULAS = {name: f for name, f in sorted(all_formulas().items()) if name.startswith("core.")}
