"""The client's method for the values of labels."""

from __future__ import annotations

from collections.abc import AsyncIterator

from memory_client._aio.transport import Bound
from memory_client._calls import labels
from memory_client.labels import LabelValue


class LabelMethods(Bound):
    """The method that lists the values of a label in the client's namespace."""

    def list_label_values(
        self, key: str, *, prefix: str = "", page_size: int = 0
    ) -> AsyncIterator[LabelValue]:
        """Yield the distinct values of a label in the order of their code points, page by page.

        Counts the items that `list_items` yields by default.

        Args:
            key: The key of the label.
            prefix: Only values that begin with this.
            page_size: Number of values to fetch at a time; 0: 100.
        """
        call = labels.list_label_values(self._namespace, key, prefix, page_size)
        return self._transport.entries(call)
