"""Records that a library decodes by their annotations."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Order(msgspec.Struct):
    at: datetime
