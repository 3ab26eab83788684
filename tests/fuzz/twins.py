"""The hot modules a second time, interpreted, beside those that the program uses: what the two do can be compared."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from functools import cache
from types import ModuleType

from router import speed


class _Sources:
    """Finds hot modules by their sources."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        source = speed.hot_modules().get(name)
        return None if source is None else importlib.util.spec_from_file_location(name, source)


@cache
def interpreted(name: str) -> ModuleType:
    """The module of that name and all hot ones that it uses, interpreted; those of the program stay as they are.

    Their classes are other ones: compare what is in their objects, and exceptions by name.
    """
    hidden = {key: sys.modules.pop(key) for key in speed.hot_modules() if key in sys.modules}
    finder = _Sources()
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)
        for key in speed.hot_modules():
            sys.modules.pop(key, None)
        sys.modules.update(hidden)
        for key, module in hidden.items():  # what `import` has put into the package
            package, _, last = key.rpartition(".")
            setattr(sys.modules[package], last, module)
