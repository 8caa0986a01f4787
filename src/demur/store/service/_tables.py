"""The tables of a service, beside those of runs. A change here needs a new SCHEMA_VERSION.

Times are whole milliseconds since 1970, UTC. Secrets are there as SHA-256 digests only.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index, UniqueConstraint, literal_column
from sqlalchemy.types import BigInteger, Float, Integer, LargeBinary, Text

from demur.store._tables import table


def _text(name: str, *, null: bool = False, key: bool = False, doc: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=null, primary_key=key, doc=doc)


def _time(name: str, *, null: bool = False, key: bool = False, doc: str | None = None) -> Column[int]:
    return Column(name, BigInteger, nullable=null, primary_key=key, autoincrement=False, doc=doc)


def _count(name: str, *, null: bool = False, key: bool = False, doc: str | None = None) -> Column[int]:
    return Column(name, Integer, nullable=null, primary_key=key, autoincrement=False, doc=doc)


def _lease() -> list[Column[Any]]:
    return [_time("lease_until", null=True), _text("lease_token", null=True)]


policies = table(
    "policies",
    Column("policy", Integer, primary_key=True, autoincrement=True),
    _text("name"),
    _count("version"),
    _text("fingerprint"),
    _text("document", doc="JSON object: the policy"),
    _text("state", doc="active, shadow or retired"),
    _time("at"),
    UniqueConstraint("name", "version"),
)
_active = policies.c.state == "active"
Index("demur_policies_active", policies.c.name, unique=True, sqlite_where=_active, postgresql_where=_active)

decisions = table(
    "decisions",
    _text("request", key=True),
    _time("at"),
    _count("policy"),
    _text("model", doc="as it was asked for"),
    _text("alpha", null=True),
    _text("guarantee", null=True),
    _text("caller", null=True, doc="id of the API key"),
    _text("question_digest"),
    _text("question", null=True),
    _text("asked", null=True, doc="JSON object: options, passages, messages, groups"),
    _text("outcome", doc="answered, abstained or failed"),
    _text("cause", null=True),
    _text("answer", null=True),
    _text("winner", null=True, doc="the answer that won the vote, given or not"),
    Column("confidence", Float(53)),
    _text("vote_key", null=True, doc="JSON list of numbers; null where sampling stopped early"),
    _count("drawn"),
    _count("n_paths", doc="paths of a whole pool"),
    _time("tokens_in"),
    _time("tokens_out"),
    _count("audit"),
    _text("reported_model", null=True),
    _text("system_fingerprint", null=True),
    _text("document", doc="JSON object: what was told the caller"),
    _text("idempotency", null=True, doc="digest"),
    _time("milliseconds"),
    _count("texts", doc="whether question, what else was asked, or texts of paths are there"),
)
Index("demur_decisions_by_texts", decisions.c.texts, decisions.c.at, decisions.c.request)
Index("demur_decisions_by_time", decisions.c.at, decisions.c.request)
Index("demur_decisions_by_policy", decisions.c.policy, decisions.c.audit, decisions.c.at, decisions.c.request)

decision_paths = table(
    "decision_paths",
    _text("request", key=True),
    _count("path", key=True),
    _text("answer", null=True),
    Column("text", LargeBinary, doc="UTF-8, deflated"),
    _text("scores", doc="JSON object"),
    _count("n_tokens", null=True),
)

audits = table(
    "audits",
    _text("request", key=True),
    _count("policy"),
    _time("at", doc="of arrival"),
    _text("question_digest"),
    _count("turn", null=True, doc="its place in the order that monitors take audits in, from 1; null: not placed yet"),
    _count("again", doc="whether its question was audited before, so that it has no place"),
)
Index("demur_audits_by_turn", audits.c.policy, audits.c.turn, unique=True)
Index("demur_audits_by_arrival", audits.c.policy, audits.c.again, audits.c.turn, audits.c.at, audits.c.request)
Index("demur_audits_by_question", audits.c.policy, audits.c.question_digest)

feedback = table(
    "feedback",
    Column("feedback", Integer, primary_key=True, autoincrement=True),
    _text("request"),
    _text("who"),
    _count("turn", doc="how many verdicts this person gave on this request before"),
    _time("at"),
    _text("verdict", null=True, doc="right, wrong or unsure; null with an answer, or where a verdict was taken back"),
    _text("answer", null=True, doc="the true one"),
    _text("source", doc="review: by who may review; api: by a caller"),
    _text("note", null=True),
    UniqueConstraint("request", "who", "turn"),
)

reviews = table(
    "reviews",
    _text("request", key=True),
    _text("reason", doc="abstained, audit or both"),
    _time("at"),
    Column("contested", Float(53), nullable=False),
    _count("policy"),
    _text("state", doc="open or done"),
    _count("second", doc="whether two people are to look at it"),
    _text("first_by", null=True),
    _text("second_by", null=True),
    _count("agree", null=True, doc="whether the two said the same"),
    _text("lease_by", null=True),
    *_lease(),
    _text("settled", null=True, doc="the lease under which it was judged last"),
)
Index("demur_reviews_by_time", reviews.c.state, reviews.c.at, reviews.c.request)
Index("demur_reviews_by_contest", reviews.c.state, reviews.c.contested, reviews.c.request)
Index("demur_reviews_by_reason", reviews.c.state, reviews.c.reason, reviews.c.at, reviews.c.request)
Index("demur_reviews_by_policy", reviews.c.state, reviews.c.policy, reviews.c.at, reviews.c.request)
AUDITED = reviews.c.reason != literal_column("'abstained'")  # in these letters, or the index would not be seen to fit
AUDITS_FIRST = Index(
    "demur_reviews_of_audits", reviews.c.state, reviews.c.at, reviews.c.request,
    sqlite_where=AUDITED, postgresql_where=AUDITED,
)  # fmt: skip
"""Made last: of two indices that serve equally by its reckoning, SQLite takes the newer one."""
reviews.indexes.discard(AUDITS_FIRST)
Index("demur_reviews_by_holder", reviews.c.lease_by)
Index("demur_reviews_by_agreement", reviews.c.agree)

api_keys = table(
    "api_keys",
    _text("key", key=True),
    _text("name"),
    _text("digest"),
    _text("roles", doc="JSON list"),
    _text("limits", doc="JSON object"),
    _time("created"),
    _time("revoked", null=True),
    _time("last_used", null=True),
    UniqueConstraint("digest"),
)
_in_force = api_keys.c.revoked.is_(None)
Index("demur_api_keys_by_name", api_keys.c.name, unique=True, sqlite_where=_in_force, postgresql_where=_in_force)

logins = table("logins", _text("digest", key=True), _text("key"), _time("until"))

spending = table(
    "spending", _text("key", key=True), _time("since", key=True, doc="of the window"), _time("paths"), _time("tokens")
)
charges = table("charges", _text("charge", key=True), _time("since"))
Index("demur_charges_by_time", charges.c.since)

repeats = table(
    "repeats",
    _text("caller", key=True),
    _text("digest", key=True, doc="of the idempotency key"),
    _text("body", doc="digest"),
    _text("request"),
    _text("state", doc="begun or done"),
    _time("at"),
    _time("lease_until"),
)
Index("demur_repeats_by_time", repeats.c.at)

monitors = table(
    "monitors",
    _count("policy", key=True),
    _text("kind", key=True),
    _count("version"),
    _text("document", doc="JSON object"),
    _text("changes", doc="JSON list: the last ones, so that none is made twice"),
)

events = table(
    "events",
    _text("event", key=True),
    _time("at"),
    _count("policy", null=True),
    _text("kind"),
    _text("words"),
    _text("facts", doc="JSON object"),
)
Index("demur_events_by_time", events.c.at, events.c.event)

canaries = table(
    "canaries",
    _count("policy", key=True),
    _text("problem", key=True),
    _text("state", doc="asked, answered or failed"),
    _time("at"),
    *_lease(),
)

OF_SERVICE = [
    policies, decisions, decision_paths, audits, feedback, reviews, api_keys, logins, spending, charges, repeats,
    monitors, events, canaries,
]  # fmt: skip
