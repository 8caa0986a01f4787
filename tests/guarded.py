"""A service with a store for tests: keys, logins and budgets are in it."""

from __future__ import annotations

from demur.server.app import make_app
from demur.server.log import DecisionLog
from demur.server.served import Models, Served
from demur.server.service import Service
from demur.server.settings import ServiceSettings
from serving import adding_pipeline

CHAT = "/v1/chat/completions"


def guarded_app(url, policy, store, *, require_keys=False, **settings):
    told = ServiceSettings(**settings)
    row = store.policies.register("sums", policy.document(), policy.fingerprint, 1)
    served = Served("sums", policy, adding_pipeline(url).answerer(policy), row.version, row.policy)
    service = Service(Models({"sums": served}), told, log=DecisionLog(store, texts=told.texts), audit_secret=b"k")
    app = make_app(service, store, require_keys=require_keys)
    app.state.access.ring.fresh = 0.2  # as FRESH, sooner
    return app


def question(text="What is 4 + 1?", **beside):
    return {"model": "sums", "messages": [{"role": "user", "content": text}], **beside}


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}
