"""Whether what a job points to is kept for it. Pure: knows neither ledger nor store.

An object with fewer references than rows that point to it would be deleted under them.
"""

from collections.abc import Iterator, Mapping

from shared.ledger.objects import Keeping


def check_kept(pointers: Mapping[str, int], kept: Mapping[str, Keeping]) -> Iterator[str]:
    """`pointers`: how many rows of the job point to each object, by key; `kept`: how it is kept."""
    for key, count in sorted(pointers.items()):
        keeping = kept.get(key)
        if keeping is None:
            yield f"the ledger does not know the object {key}, which {count} rows point to"
        elif keeping.ends:
            yield f"the object {key} is about to be deleted, and {count} rows point to it"
        elif keeping.refs < count:
            yield f"the object {key} counts {keeping.refs} references, and {count} rows point to it"
