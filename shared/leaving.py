"""How a process of ours leaves once it has given back what it held. Knows nothing of its work."""

import atexit
import gc


def leave_quickly() -> None:
    """Have this process end without a last search of its memory for garbage; call it in `main`.

    At its end the interpreter looks at every object it ever made: 0.1 to 0.4 s of CPU in each of
    ours, for memory that the kernel takes back anyway. A farm ends ten of them together, within
    seconds, on a machine that may be busy. Exit hooks run and files are closed as always.
    """
    atexit.register(_spare_the_search)


def _spare_the_search() -> None:
    gc.disable()
    gc.freeze()
