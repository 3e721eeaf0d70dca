"""The fuzzer: ``python -m tests.fuzz.harness SECONDS FOLDER [CORPUS…]``, from the project's root.

The folder, which is made, holds what the run needs.
Inputs grow from the golden cases and any corpus that is named; half of the new ones are made of known keys instead.
An input that ends in an exception is kept in ``tests/fuzz/finds``, which a plain test replays, and ends the run.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["composeplat"]):
    from composeplat.compose.keys import SECTIONS
    from tests.fuzz.target import read_to_the_end
    from tests.fuzz.trees import SCALARS, definitions

HERE = Path(__file__).resolve().parent
FINDS = HERE / "finds"
GOLDEN = HERE.parent / "golden"
MADE_OF_KEYS = 0.3


def write_dictionary(path: Path) -> None:
    """Write the words that the fuzzer may put in: keys, and values that mean something."""
    args = {key for keys in SECTIONS.values() for key in keys}
    args |= {word for word in SCALARS if isinstance(word, str) and word.isascii() and word.isprintable() and word}
    args |= {": ", "- ", "<<: *a", "&a ", "*a", "!reset ", "!override ", "\\x0a%%%%\\x0a", "include: [more]"}
    lines = (
        word if word.startswith("\\x") else word.replace("\\", "\\\\").replace('"', '\\"') for word in sorted(args)
    )
    path.write_text("".join(f'"{line}"\n' for line in lines))


def mutate(content: bytes, most: int, seed: int) -> bytes:
    random = Random(seed)  # noqa: S311 -- the fuzzer's seed
    if random.random() < MADE_OF_KEYS:
        return definitions(random)[:most]
    made: bytes = atheris.Mutate(content, most)
    return made


def main() -> None:
    seconds, work, *corpora = sys.argv[1:]
    folder, grown, args = (Path(work) / name for name in ("demo", "grown", "words"))
    folder.mkdir(parents=True)
    grown.mkdir()
    write_dictionary(args)

    def read(content: bytes) -> None:
        try:
            read_to_the_end(content, folder)
        except Exception:
            (FINDS / hashlib.sha256(content).hexdigest()[:12]).write_bytes(content)
            raise

    options = [
        f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=8192", "-print_final_stats=1",
        f"-dict={args}", f"-artifact_prefix={work}/",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(grown), str(GOLDEN), *corpora], read, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
