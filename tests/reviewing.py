"""A service whose reviews tests work on: the adding model, a store, and people with keys."""

from __future__ import annotations

import requests

from demur.server.app import make_app
from demur.server.log import DecisionLog
from demur.server.served import Models, Served
from demur.server.service import Service
from demur.server.settings import ServiceSettings
from demur.store.service import Decision, DecisionPath, NewReview
from serving import adding_pipeline


def reviewed_app(url, policy, store, **settings):
    """The application, with its policy registered in the store."""
    told = ServiceSettings(**settings)
    row = store.policies.register("sums", policy.document(), policy.fingerprint, 1)
    served = Served("sums", policy, adding_pipeline(url).answerer(policy), row.version, row.policy)
    log = DecisionLog(store, texts=told.texts, second_share=told.second_opinions)
    app = make_app(Service(Models({"sums": served}), told, log=log, audit_secret=b"k"), store)
    app.state.access.ring.fresh = 0.05
    return app


def ask(address, *numbers, **headers):
    """Ask for sums; 1, 5 and 13 are abstained from, even ones answered. The ids of the requests."""
    ids = []
    for number in numbers:
        body = {"model": "sums", "messages": [{"role": "user", "content": f"What is {number} + 1?"}]}
        reply = requests.post(f"{address}/v1/chat/completions", json=body, headers=headers, timeout=300)
        ids.append(reply.json()["demur"]["request_id"])
    return ids


class Person:
    """Somebody at the queue, through HTTP."""

    def __init__(self, address, key=None):
        self.address, self.session = address, requests.Session()
        if key is not None:
            self.session.headers["Authorization"] = f"Bearer {key}"

    def post(self, what, /, **body):
        return self.session.post(f"{self.address}/review/api/{what}", json=body, timeout=300)

    def get(self, what, /, **query):
        return self.session.get(f"{self.address}/review/api/{what}", params=query, timeout=300)

    def claim(self, **wanted):
        return self.post("claim", **wanted).json()["item"]

    def judge(self, item, **said):
        return self.post("verdict", request=item["request"], token=item["token"], **said)


def nasty(request, text, *, at=1, policy=1, reason="abstained", answer=None, **asked):
    """A decision all of whose texts are one text, and its review."""
    answer = text if answer is None else answer
    told = {"votes": [{"answer": answer, "paths": 2, "share": 0.5}, {"answer": "4", "paths": 1, "share": 0.25}]}
    told |= {"threshold": 0.9, "explanation": text, "reason": text}
    paths = tuple(DecisionPath(k, answer if k < 2 else "4", text, {"judge": 0.5}, 3) for k in range(3))
    decision = Decision(
        request, at, policy, "sums", "d", "abstained", 3, 3, 5, question=text, asked=asked or {"options": [text, "b"]},
        winner=answer, confidence=0.5, document=told, paths=paths, alpha="0.1", guarantee="marginal",
        audit=reason != "abstained",
    )  # fmt: skip
    return decision, NewReview(request, reason, at, 0.5, policy)
