"""The call that lists the values of a label."""

from __future__ import annotations

from memory_client._calls.call import Call, Page
from memory_client._gen.memory_service.v1 import memory_pb2
from memory_client.labels import LabelValue


def list_label_values(namespace: str, key: str, prefix: str, page_size: int) -> Call[Page[LabelValue]]:
    """Call ListLabelValues for its first page."""
    request = memory_pb2.ListLabelValuesRequest(
        namespace=namespace, key=key, prefix=prefix, page_size=page_size
    )

    def read(response: memory_pb2.ListLabelValuesResponse) -> Page[LabelValue]:
        values = [LabelValue(found.value, found.count) for found in response.values]
        return Page(values, response.next_page_token, response)

    path = "/memory_service.v1.MemoryService/ListLabelValues"
    return Call(path, request, memory_pb2.ListLabelValuesResponse, read)
