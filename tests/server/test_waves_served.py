"""Waves: fewer paths, the same decision; audits are drawn whole."""

from __future__ import annotations

import openai

from demur.pipeline.waves import Waves
from serving import listening, made_app, service_of


def ask(address, question):
    with openai.OpenAI(base_url=f"{address}/v1", api_key="unused", max_retries=0) as client:
        return client.chat.completions.create(model="sums", messages=[{"role": "user", "content": question}])


def test_waves_decide_as_all_paths_do_and_draw_fewer(upstream, majority):
    whole, waved = service_of(upstream.url, majority), service_of(upstream.url, majority, waves=Waves(3, 1))
    with listening(made_app(whole)) as all_at_once, listening(made_app(waved)) as in_waves:
        for k in range(20):
            full = ask(all_at_once, f"What is {k} + 1?").model_extra["demur"]
            reply = ask(in_waves, f"What is {k} + 1?")
            few = reply.model_extra["demur"]
            assert (few["decision"], few["answer"]) == (full["decision"], full["answer"])
            assert few["paths"]["of"] == 8
            if k % 2 == 0:  # five of eight settle it; where answers scatter, a tie may need all of them
                assert (few["decision"], few["paths"]["drawn"]) == ("answered", 5)
                assert few["certain_early"]["share_at_least"] <= full["confidence"]
            elif few["decision"] == "abstained":
                assert reply.choices[0].message.refusal.startswith("Not answered")
