"""statsforecast's models: 2 s and 200 MB, so this is imported only where cells are computed."""

from __future__ import annotations

import gc

# Nothing that an import makes is garbage; to look for some would take a quarter of the time. What is made here stays, and
# is nothing to look through later either, nor to be copied into the slots that are forked from here.
gc.disable()
try:
    from statsforecast import models
finally:
    gc.freeze()
    gc.enable()

__all__ = ["models"]
