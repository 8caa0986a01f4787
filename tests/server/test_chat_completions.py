"""The official client, with nothing changed but its base URL."""

from __future__ import annotations

import openai
import pytest


@pytest.fixture
def client(address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key="unused", max_retries=0) as made:
        yield made


def ask(client, question, model="sums", **beside):
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": question}], **beside)


def test_a_sure_question_is_answered(client):
    reply = ask(client, "What is 4 + 1?")
    message = reply.choices[0].message
    assert (message.content, message.refusal, reply.choices[0].finish_reason) == ("5", None, "stop")
    told = reply.model_extra["demur"]
    assert told["decision"] == "answered"
    assert told["answer"] == "5"
    assert told["votes"] == [{"answer": "5", "paths": 5, "share": 1.0}]
    assert told["paths"] == {"drawn": 5, "of": 5}
    assert told["confidence"] == 1.0
    assert told["promise"].startswith("On a new question exchangeable with the 60 calibration questions")


def test_a_contested_question_is_abstained_from(client):
    reply = ask(client, "What is 5 + 1?")
    message = reply.choices[0].message
    assert message.content == "I would rather not answer this question."
    assert message.refusal.startswith("Not answered: confidence 0.")
    assert reply.choices[0].finish_reason == "stop"
    assert reply.model_extra["demur"]["answer"] is None


def test_usage_counts_the_tokens_of_all_paths(client, upstream):
    reply = ask(client, "What is 4 + 1?")
    assert reply.usage.completion_tokens == 3 * len(upstream.requests)


def test_a_stream_ends_in_the_same(client):
    chunks = list(
        client.chat.completions.create(
            model="gpt-4o",
            messages=[{"role": "user", "content": "What is 8 + 1?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "9"
    ends = [chunk for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason]
    assert len(ends) == 1
    assert ends[0].model_extra["demur"]["alpha"] == 0.3
    assert chunks[-1].usage.completion_tokens > 0
