"""Logs that inspect_ai itself writes, and what it reads in them: `make_logs.py URL FOLDER`, in its environment."""

import json
import sys
from pathlib import Path

from inspect_ai import Epochs, Task, eval  # noqa: A004
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.log._recorders.chunked.convert import convert_eval_logs_to_chunked
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate, system_message

url, folder = sys.argv[1], Path(sys.argv[2])
long = "Once upon a time there were numbers. " * 20
samples = [
    Sample(id=1, input=f"{long}What is 1 + 1?", target="2", metadata={"subject": "sums", "answer": "2"}),
    Sample(id="two words", input="What is 2 + 1?", target=["3", "three"]),
    Sample(id="a/b", input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content="3 + 1?")], target="4"),
    Sample(id="mc", input="Which is red?", choices=["grass", "blood"], target="B"),
]


def evaluate(log_format: str) -> Path:
    task = Task(
        name="sums",
        dataset=MemoryDataset(samples),
        solver=[system_message("Think first."), generate()],
        scorer=[match(location="any"), includes()],
        epochs=Epochs(3, "mode"),
    )
    config = GenerateConfig(temperature=0.7, max_tokens=64, logprobs=True)
    model = get_model("openai-api/loop/small", base_url=url, api_key="x", config=config)
    (log,) = eval(task, model=model, display="none", log_dir=str(folder / "made"), log_format=log_format)
    assert log.status == "success", log.error
    return Path(log.location.removeprefix("file://")).rename(folder / f"log.{log_format}")


for log in (evaluate("eval"), evaluate("json")):
    read = read_eval_log(str(log)).samples or []
    told = [
        {
            "id": str(one.id),
            "epoch": one.epoch,
            "text": one.output.completion,
            "right": one.scores["match"].value == "C",
            "target": one.target,
            "logprobs": [token.logprob for token in one.output.choices[0].logprobs.content],
        }
        for one in read
    ]
    (folder / f"{log.name}.read").write_text(json.dumps(told))
convert_eval_logs_to_chunked(str(folder / "log.eval"), str(folder / "parts"))
