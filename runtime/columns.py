"""The names of the columns that the engine adds to a model's own, in the lake and in chunk files."""

from __future__ import annotations

#: Every name of ours begins so, but for HASH, which push functions see.
OURS = "__ondatra_"

#: A row's number in its table, for ever; with the change type it names a row to a push function.
ROWID = "__ondatra_rowid"
#: The key as text; two parts of a hash over the row; the hash over a group's rows; a partition's text.
KEY = "__ondatra_key"
H1, H2 = "__ondatra_h1", "__ondatra_h2"
HASH = "_content_hash"
PARTITION = "__ondatra_partition"

#: Of staged rows: insert, update_preimage, update_postimage or delete.
CHANGE_TYPE = "__ondatra_change_type"
#: Of staged rows: whether it becomes a record, or is an old image that only accompanies one.
RECORD = "__ondatra_record"
#: Of staged rows: whether --full sends it again.
AGAIN = "__ondatra_again"
#: The folder of a chunk file names its part.
PART = "__ondatra_part"

#: Of rows without a usable key: NULL or DUPLICATE.
STATUS = "__ondatra_status"
