# Generated from _aio/batches.py by generate_sync.py. Do not edit: change that and run it again.
"""The client's methods that change many items and states at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from memory_client._calls import batches
from memory_client._sync.transport import Bound
from memory_client.found import Deleted, Found
from memory_client.models import ItemKind
from memory_client.operations import DeleteWhereOperation, WriteOperation, WriteResult


class BatchMethods(Bound):
    """Methods that change many items and states of the client's namespace at once."""

    def delete_where(
        self,
        *,
        session_id: str = "",
        labels: Mapping[str, str] | None = None,
        kinds: Sequence[ItemKind | str] = (),
        filter: str = "",
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        keep_derived: bool = False,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> Deleted:
        """Remove all items that match every condition, and what was made only from them; return the number of
        those that match. Its `derived_count` is the number of the others.

        At least one condition is required. The server removes up to 10,000 items per call, so several calls
        may be made: if one fails, the items of the earlier ones stay removed. Items that are added after the
        first call are kept. Other documents and facts are removed by `delete_document` and `delete_memory`.

        Args:
            session_id: Only items of this conversation. Empty: of any.
            labels: Only items that have all these labels.
            kinds: Only items of these kinds of a conversation. Empty: of all of those.
            filter: An expression over labels, metadata, role, kind and times, as in `retrieve`.
            start_time: Only items whose create_time is at or after it.
            end_time: Only items whose create_time is before it.
            keep_derived: Keep what was made from them; see `delete`.
            dry_run: Count the items that match and remove none; `derived_count` is 0.
            request_id: Makes a retry of the first call safe; the others get new ids. None: a new id.

        Raises:
            InvalidArgument: No condition is given, or one is malformed.
        """
        conditions = DeleteWhereOperation(
            session_id=session_id,
            labels=labels,
            kinds=kinds,
            filter=filter,
            start_time=start_time,
            end_time=end_time,
            keep_derived=keep_derived,
        )
        call = batches.delete_where(self._namespace, conditions, dry_run, request_id)
        deleted = [each for page in self._transport.all_pages(call) for each in page.entries]
        return Deleted(sum(deleted), sum(each.derived_count for each in deleted))

    def batch_write(
        self, operations: Iterable[WriteOperation], *, request_id: str | None = None
    ) -> Found[WriteResult]:
        """Apply 1 to 1000 operations on items and states, all or none.

        All preconditions are checked against the namespace before the batch. Then the changes are made in
        order. Only one operation may name an item or a state.

        Args:
            operations: `AddOperation`, `UpdateOperation`, `DeleteOperation`, `DeleteWhereOperation`,
                `SaveStateOperation`, `DeleteStateOperation`, `WriteFileOperation`, `EditFileOperation`,
                `RenameFileOperation` and `DeleteFileOperation`, in any combination.
            request_id: Makes a retry safe: the batch is applied once. None: a new id for this call.

        Returns:
            A list with the result of each operation; its `degraded` lists what the server could not do, and
            `revision` is that of the namespace after the batch.

        Raises:
            AlreadyExists: The id of an item to add exists, and its `on_duplicate` is "fail".
            NotFound: An item or state to change or delete does not exist.
            Conflict: The expected revision or version of an operation is not the current one.
            InvalidArgument: An operation is malformed; `field` begins with its index, as in
                "operations[2].add.item.text".
        """
        return self._transport.unary(batches.batch_write(self._namespace, operations, request_id))
