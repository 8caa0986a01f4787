"""inspect-ai's own logs, written and read by itself: run by eval_import_speed.py in inspect's environment.

make URL FOLDER SIZE …      evaluate a few questions on a model, and multiply the samples to logs of these sizes
read FILE WAY               read a whole log by one way of inspect's API: CPU seconds after the imports, peak memory
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from zipfile import ZipFile

import inspect_ai._util.zipfile as inspect_zip
from inspect_ai import Epochs, Task, eval  # noqa: A004
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, read_eval_log_samples
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

QUESTIONS, EPOCHS = 20, 10
BESIDE = {"events", "messages", "store", "attachments", "events_data", "timelines"}
"""Fields that a path does not need, which inspect can be told to leave out."""


def make(url: str, folder: Path, sizes: list[int]) -> None:
    dataset = MemoryDataset([Sample(id=k, input=f"What is {k} + 1?", target=str(k + 1)) for k in range(QUESTIONS)])
    task = Task(dataset=dataset, solver=generate(), scorer=includes(), epochs=Epochs(EPOCHS, "mode"))
    config = GenerateConfig(max_connections=16, logprobs=True, temperature=0.8)
    model = get_model("openai-api/bench/m", base_url=url, api_key="x", config=config)
    (log,) = eval(task, model=model, display="none", log_dir=str(folder / "logs"))
    assert log.status == "success", log.error
    with ZipFile(log.location.removeprefix("file://")) as small:
        header = json.loads(small.read("header.json"))
        samples = [json.loads(small.read(name)) for name in small.namelist() if name.startswith("samples/")]
    for size in sizes:
        multiply(header, samples, size, folder / f"{size}.eval")


def multiply(header: dict, samples: list[dict], size: int, target: Path) -> None:
    """A log of as many samples, epoch by epoch, as an evaluation finishes them."""
    questions = size // EPOCHS
    inspect_zip._ZSTD_THREADS = 0  # twelve threads for every entry are most of the time, and change nothing
    header["eval"]["dataset"] |= {"samples": questions, "sample_ids": list(range(questions))}
    with ZipFile(target, "w", **inspect_zip.zipfile_compress_kwargs) as large:
        for epoch in range(1, EPOCHS + 1):
            for question in range(questions):
                sample = samples[(question * EPOCHS + epoch) % len(samples)] | {"id": question, "epoch": epoch}
                large.writestr(f"samples/{question}_epoch_{epoch}.json", json.dumps(sample))
        large.writestr("header.json", json.dumps(header))


def read(file: str, way: str) -> int:
    if way == "read_eval_log":
        return len(read_eval_log(file).samples or ())
    if way == "read_eval_log, lean":
        return len(read_eval_log(file, exclude_fields=BESIDE).samples or ())
    return sum(1 for _ in read_eval_log_samples(file))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], Path(sys.argv[3]), [int(size) for size in sys.argv[4:]])
    else:
        start = time.process_time()
        count = read(sys.argv[2], sys.argv[3])
        spent = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"samples": count, "cpu_seconds": spent, "peak_megabytes": peak}))
