"""Credit of many files by many processes, through Ray Data; the same numbers as of one process."""

from milegpo_plugin.agl.offline.pipeline import PART_BYTES, credit_files
from milegpo_plugin.agl.offline.summary import OfflineCredit

__all__ = ["PART_BYTES", "OfflineCredit", "credit_files"]
