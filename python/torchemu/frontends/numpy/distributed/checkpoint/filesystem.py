"""torch.distributed.checkpoint.filesystem: checkpoints as folders, with a file for each rank and one of contents.

The files are torchemu's own: each entry is what torch.save writes, and ``.metadata`` is JSON.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy._shape import Size
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torchemu.frontends.numpy.serialization import load, save

__all__ = ["FileSystemReader", "FileSystemWriter"]

_CONTENTS = ".metadata"

Entries = dict[str, dict[str, Any]]
"""By name: the shape and dtype of a tensor, and in any case file, offset and length."""


class FileSystemWriter:
    """Writes checkpoints into a folder, which is made if it is not there.

    Args:
        path: the folder.
        single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead, cache_staged_state_dict, overwrite: mean
            nothing here; files that are there are overwritten.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        self.path = Path(path)

    def write(self, rank: int, values: dict[str, Any]) -> Entries:
        """Writes what a rank saves. Returns where it is."""
        self.path.mkdir(parents=True, exist_ok=True)
        name, found = f"__{rank}_0.distcp", Entries()
        with open(self.path / name, "wb") as file:
            for key, value in values.items():
                blob = io.BytesIO()
                save(value.detach() if isinstance(value, Tensor) else value, blob)
                about = {"shape": list(value.shape), "dtype": value.dtype.name} if isinstance(value, Tensor) else {}
                found[key] = {**about, "file": name, "offset": file.tell(), "length": file.write(blob.getvalue())}
        return found

    def finish(self, entries: Entries) -> None:
        """Writes the contents: by then the checkpoint is whole."""
        unfinished = self.path / f"{_CONTENTS}.tmp"
        unfinished.write_text(json.dumps(entries))
        unfinished.replace(self.path / _CONTENTS)


class FileSystemReader:
    """Reads checkpoints from a folder.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def entries(self) -> Entries:
        """Where everything is.

        Raises:
            FileNotFoundError: there is no checkpoint, or it was not finished.
        """
        found: Entries = json.loads((self.path / _CONTENTS).read_text())
        return found

    def read(self, entry: dict[str, Any]) -> Any:
        """What an entry is."""
        with open(self.path / entry["file"], "rb") as file:
            file.seek(entry["offset"])
            blob = io.BytesIO(file.read(entry["length"]))
        return load(blob, map_location="cpu" if "shape" in entry else None, weights_only=False)

    def read_metadata(self) -> Metadata:
        """What is in the checkpoint."""
        entries = self.entries()
        return contents(entries)


def contents(entries: Entries) -> Metadata:
    """What is in a checkpoint with these entries."""
    found: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    for name, entry in entries.items():
        if "shape" not in entry:
            found[name] = BytesStorageMetadata()
            continue
        size = Size(entry["shape"])
        whole = ChunkStorageMetadata(Size([0] * len(size)), size)
        found[name] = TensorStorageMetadata(TensorProperties(dtypes.parse(entry["dtype"])), size, [whole])
    places = {name: (entry["file"], entry["offset"], entry["length"]) for name, entry in entries.items()}
    return Metadata(found, storage_data=places)
