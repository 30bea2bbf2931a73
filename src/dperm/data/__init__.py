"""Data sets: fetched from one of several sources, verified, prepared and stored."""

from dperm.data.arrays import digest_arrays
from dperm.data.fetching import FetchRecord, fetch, read_record
from dperm.data.preparing import Prepared, load_prepared, made_by, prepare
from dperm.data.readers import read_table
from dperm.data.tables import table_arrays

IN_KEYS = "names"
__all__ = [
    "FetchRecord",
    "Prepared",
    "digest_arrays",
    "fetch",
    "load_prepared",
    "made_by",
    "prepare",
    "read_record",
    "read_table",
    "table_arrays",
]
