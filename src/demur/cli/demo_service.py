"""The end of `demur demo`: its policy served by `demur serve`, asked by plain HTTP, and one decision judged."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import demur
from demur.cli import output
from demur.errors import DemurError, MissingExtra
from demur.files.strict_json import as_json

DEMUR = (sys.executable, "-m", "demur")
_MODEL, _POLICY, _STORE, _LINES = "demo", "policy.json", "service.db", "service.log"
_START_SECONDS, _END_SECONDS, _ANSWER_SECONDS = 120.0, 30.0, 120.0
_PLAIN = build_opener(ProxyHandler({}))


def serve_and_ask(
    folder: Path, alpha: float, problems: Sequence[demur.Problem], gold_of: Callable[[str | None], str]
) -> dict[str, Any]:
    """Questions to the service until one was answered and one was not, a verdict on the latter, and what is kept."""
    started = time.monotonic()
    with _serving(folder) as address:
        replies = [_told(problem, reply) for problem, reply in _ask_until_both(address, alpha, problems)]
        left = next((reply for reply in replies if reply["decision"] == "abstained"), None)
        review = None if left is None else _judge(address, left["request_id"], gold_of(left["question"]))
    facts = {"address": address, "asked": replies, "review": review, "log": _kept(folder, replies)}
    return {**facts, "seconds": time.monotonic() - started}


def show(facts: dict[str, Any], folder: Path) -> None:
    """What came of it, in a few lines."""
    output.say(
        f"\n6. The same as a service: demur serve --policy {_MODEL}={folder / _POLICY} --store {folder / _STORE}\n"
        f"   POST {facts['address']}/chat/completions, which any OpenAI client can do:"
    )
    shown: set[str] = set()
    for reply in facts["asked"]:
        if reply["decision"] not in shown:
            output.say(f"\n   {reply['question']}", f"     content: {output.visible(reply['content'], 200)}")
            if reply["refusal"]:
                output.say(f"     refusal: {output.visible(reply['refusal'], 300)}")
            output.say(f"     demur: {reply['decision']}, {reply['paths']} paths, {reply['tokens']} tokens in all")
        shown.add(reply["decision"])
    if (review := facts["review"]) is not None:
        output.say(
            f"\n   A person takes the question that was left from the queue, and says that it is {review['answer']}: "
            f"the vote, {output.visible(review['vote'], 30)}, was {review['verdict']}."
        )
    log = facts["log"]
    output.say(
        f"   The log, once the service has ended: {log['answered']} answered, {log['abstained']} abstained, "
        f"{log['judged']} judged. ({facts['seconds']:.0f} s)"
    )


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """The address of `demur serve`, a process of its own, while the block lasts."""
    try:
        import demur.server.app  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f"the service needs packages that are not here ({error.name})", "serve") from None
    for ending in ("", "-wal", "-shm"):  # the log of an earlier demo, of another policy
        (folder / f"{_STORE}{ending}").unlink(missing_ok=True)
    flags = ["--policy", f"{_MODEL}={_POLICY}", "--store", _STORE, "--port", "0", "--json"]
    with (folder / _LINES).open("w", encoding="utf-8") as lines:
        process = subprocess.Popen(
            [*DEMUR, "serve", *flags], cwd=folder, stdout=subprocess.PIPE, stderr=lines, text=True, encoding="utf-8"
        )
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            if not first:
                raise DemurError(f"the service did not start; {folder / _LINES} says why")
            address = str(json.loads(first)["address"])
            _wait_for(address.removesuffix("/v1"), process)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def _wait_for(root: str, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            with _PLAIN.open(f"{root}/healthz", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise DemurError("the service did not answer", f"its lines are in {_LINES}, beside the policy")


def _ask_until_both(
    address: str, alpha: float, problems: Sequence[demur.Problem]
) -> Iterator[tuple[demur.Problem, dict[str, Any]]]:
    decisions: set[str] = set()
    for problem in problems:
        asked = {"model": f"{_MODEL}@{alpha:g}", "messages": [{"role": "user", "content": problem.question}]}
        reply = _post(f"{address}/chat/completions", asked)
        yield problem, reply
        decisions.add(reply["demur"]["decision"])
        if len(decisions) == 2:
            return


def _told(problem: demur.Problem, reply: dict[str, Any]) -> dict[str, Any]:
    message, beside = reply["choices"][0]["message"], reply["demur"]
    return {
        "question": problem.question,
        "content": message["content"],
        "refusal": message["refusal"],
        "decision": beside["decision"],
        "request_id": beside["request_id"],
        "paths": beside["paths"]["drawn"],
        "tokens": reply["usage"]["total_tokens"],
    }


def _judge(address: str, request: str, gold: str) -> dict[str, Any]:
    """What a person does in the review page: take an item, see its vote, and say what is right."""
    api = f"{address.removesuffix('/v1')}/review/api"
    item = _post(f"{api}/claim", {"request": request, "blind": "never"})["item"]
    vote = item["vote"]["winner"]
    verdict = "right" if vote is not None and demur.answers.is_correct(vote, gold) else "wrong"
    _post(f"{api}/verdict", {"request": request, "token": item["token"], "verdict": verdict, "answer": gold})
    return {"request_id": request, "answer": gold, "verdict": verdict, "vote": vote}


def _post(url: str, document: dict[str, Any]) -> dict[str, Any]:
    request = Request(url, as_json(document).encode(), {"Content-Type": "application/json"})
    with _PLAIN.open(request, timeout=_ANSWER_SECONDS) as reply:
        told: dict[str, Any] = json.load(reply)
    return told


def _kept(folder: Path, replies: Sequence[dict[str, Any]]) -> dict[str, int]:
    """What the log says when the service is gone."""
    from demur.store.service import ServiceStore

    with ServiceStore(folder / _STORE) as store:
        tally = store.decisions.tally()
        judged = store.feedback.latest([reply["request_id"] for reply in replies])
    return {"answered": tally.answered, "abstained": tally.abstained + tally.failed, "judged": len(judged)}
