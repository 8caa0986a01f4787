"""Logs in the layout that inspect_ai documents and writes, made here: an archive of samples, or one JSON object."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

STORED, DEFLATED, ZSTANDARD = 0, 8, 93


def sample(
    name: Any = 1, epoch: int = 1, said: Any = "The answer is 4.", *, value: Any = "C", **changes: Any
) -> dict[str, Any]:
    """A sample as inspect 0.3 writes one."""
    message = {"id": "m2", "content": said, "source": "generate", "role": "assistant", "model": "small"}
    tokens = [{"token": "x", "logprob": -0.1, "bytes": None}, {"token": "y", "logprob": -0.3, "bytes": None}]
    return {
        "id": name,
        "epoch": epoch,
        "input": f"What is {name} + 3?",
        "target": "4",
        "messages": [{"id": "m1", "content": f"What is {name} + 3?", "source": "input", "role": "user"}, message],
        "output": {
            "model": "small",
            "choices": [{"message": message, "stop_reason": "stop", "logprobs": {"content": tokens}}],
            "completion": said if isinstance(said, str) else "",
            "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
            "time": 0.5,
        },
        "scores": {"match": {"value": value, "answer": "4", "explanation": said, "history": []}},
        "metadata": {},
        "store": {},
        "events": [{"event": "sample_init", "timestamp": "2026-01-01", "sample": {"input": "long"}}],
        "model_usage": {},
        "uuid": f"u{name}-{epoch}",
        "attachments": {},
        **changes,
    }


def header(epochs: int = 1, ids: Iterable[Any] = (), **changes: Any) -> dict[str, Any]:
    spec = {
        "created": "2026-01-01T00:00:00+00:00",
        "task": "sums",
        "dataset": {"name": "sums", "sample_ids": list(ids)},
        "model": "openai/small",
        "model_generate_config": {"temperature": 0.7, "max_connections": 10},
        "config": {"epochs": epochs},
    }
    plan = {"name": "plan", "steps": [{"solver": "generate", "params": {}}], "config": {"max_tokens": 100}}
    return {"version": 2, "status": "success", "eval": spec, "plan": plan, **changes}


def write_archive(
    path: Path, samples: Iterable[dict[str, Any]], *, method: int = DEFLATED, start: Any = None, **told: Any
) -> Path:
    """An .eval log, its samples in the order they are given; entries by `entry`, so that any method will do."""
    samples = list(samples)
    ids = dict.fromkeys(one["id"] for one in samples)
    epochs = max((one["epoch"] for one in samples), default=1)
    entries = [("_journal/start.json", start if start is not None else header(epochs, ids))]
    entries += [(f"samples/{one['id']}_epoch_{one['epoch']}.json", one) for one in samples]
    entries += [("summaries.json", []), ("header.json", header(epochs, ids, **told))]
    return write_entries(path, entries, method=method)


def write_entries(path: Path, entries: Iterable[tuple[str, Any]], *, method: int = DEFLATED) -> Path:
    """A ZIP archive written by hand: the standard library packs no Zstandard before Python 3.14."""
    body, directory, count = b"", b"", 0
    for name, value in entries:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        packed, title = _packed(raw, method), name.encode()
        sizes = (zlib.crc32(raw), len(packed), len(raw), len(title), 0)
        directory += struct.pack("<4sHHHHHHLLLHHHHHLL", b"PK\x01\x02", 63, 63, 0x800, method, 0, 33, *sizes, 0, 0, 0, 0,
                                 len(body)) + title  # fmt: skip
        body += struct.pack("<4sHHHHHLLLHH", b"PK\x03\x04", 63, 0x800, method, 0, 33, *sizes) + title + packed
        count += 1
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    assert len(zipfile.ZipFile(path).namelist()) == count
    return path


def write_json(path: Path, samples: Iterable[dict[str, Any]], **told: Any) -> Path:
    """The same as one JSON object."""
    samples = list(samples)
    epochs = max((one["epoch"] for one in samples), default=1)
    path.write_text(json.dumps({**header(epochs, **told), "samples": samples}))
    return path


def _packed(raw: bytes, method: int) -> bytes:
    if method == DEFLATED:
        packer = zlib.compressobj(wbits=-15)
        return packer.compress(raw) + packer.flush()
    if method == ZSTANDARD:
        import zstandard

        half = len(raw) // 2  # as two frames, which inspect makes of large samples
        return b"".join(zstandard.ZstdCompressor().compress(part) for part in (raw[:half], raw[half:]))
    return raw
