"""API keys and logins: secrets are told once and kept as digests, and what is revoked or over opens nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from demur.errors import InvalidValue, StoreError
from demur.store.service import ServiceStore
from service_rows import at_once


def everything_in(store, table):
    with store.engine.connect() as connection:
        return str(connection.execute(text(f"SELECT * FROM {table}")).all())


def test_a_key_opens_what_it_was_made_for_until_it_is_revoked(store):
    key, secret = store.keys.create("web", ["review", "ask"], 5, {"paths_per_minute": 320})
    assert (key.roles, key.limits, key.created, key.revoked) == (("ask", "review"), {"paths_per_minute": 320}, 5, None)
    assert store.keys.find(secret) == key
    assert store.keys.revoke(key.key, 9).revoked == 9
    assert store.keys.revoke(key.key, 11).revoked == 9
    assert store.keys.find(secret) is None
    assert [each.name for each in store.keys.all()] == ["web"]


def test_no_secret_is_in_the_store(store):
    key, secret = store.keys.create("web", ["ask"], 1)
    login, token = store.logins.begin(key.key, 100)
    assert len(secret) > 43
    for table in ("demur_api_keys", "demur_logins"):
        kept = everything_in(store, table)
        assert not [hidden for hidden in (secret, token, login.csrf) if hidden in kept]
    with store.engine.connect() as connection:
        stolen = connection.execute(text("SELECT digest FROM demur_api_keys")).scalar()
    assert store.keys.find(stolen) is None


def test_secrets_differ(store):
    secrets = {store.keys.create(f"k{number}", ["ask"], 1)[1] for number in range(20)}
    assert len(secrets) == 20


@pytest.mark.parametrize("forged", ["", "demur-", "demur-" + "A" * 43, "' OR 1=1 --", "\x00", "\ud800"])
def test_a_forged_key_opens_nothing(store, forged):
    store.keys.create("web", ["ask"], 1)
    assert store.keys.find(forged) is None


def test_one_name_is_one_key_in_force(place, store):
    key, _ = store.keys.create("web", ["ask"], 1)
    with pytest.raises(StoreError, match="there is a key 'web' already; revoke it, or choose another name"):
        store.keys.create("web", ["ask"], 2)
    store.keys.revoke(key.key, 3)

    def make():
        with ServiceStore(place) as own:
            return own.keys.create("web", ["ask"], 4)

    made = at_once(*[make] * 4)
    assert sum(isinstance(each, StoreError) for each in made) == 3


@pytest.mark.parametrize("roles", [[], ["root"], ["ask", "root"]])
def test_a_role_that_there_is_not_is_refused(store, roles):
    with pytest.raises(InvalidValue, match="some of the roles ask, review, metrics, admin"):
        store.keys.create("web", roles, 1)


@pytest.mark.parametrize("limits", [{"paths": -1}, {"paths": 1.5}, {"paths": "many"}, {"paths": True}])
def test_a_limit_that_is_no_whole_number_is_refused(store, limits):
    with pytest.raises(InvalidValue, match="the limit paths must be a whole number"):
        store.keys.create("web", ["ask"], 1, limits)


def test_the_last_use_is_noted_to_the_minute(store):
    key, _ = store.keys.create("web", ["ask"], 1)
    noted = []
    for at in (1_000_000, 1_000_500, 1_061_000, 900_000):
        store.keys.used(key.key, at)
        noted.append(store.keys.all()[0].last_used)
    assert noted == [1_000_000, 1_000_000, 1_061_000, 1_061_000]


@pytest.mark.parametrize(
    "damage", ["roles = '[\"root\"]'", "roles = '{}'", "limits = '{\"paths\": -5}'", "limits = '7'"]
)
def test_a_key_whose_rights_were_damaged_opens_nothing(store, damage):
    _, secret = store.keys.create("web", ["ask"], 1)
    with store.engine.begin() as connection:
        connection.execute(text(f"UPDATE demur_api_keys SET {damage}".replace(":", r"\:")))
    with pytest.raises(StoreError, match="is damaged"):
        store.keys.find(secret)


def test_revoking_what_is_not_there_says_so(store):
    with pytest.raises(StoreError, match="there is no key with the id 'k0'"):
        store.keys.revoke("k0", 1)


def test_a_login_holds_until_its_time_its_end_or_its_keys_end(store):
    key, _ = store.keys.create("web", ["review"], 1)
    login, token = store.logins.begin(key.key, 100)
    assert store.logins.find(token, 99) == login
    assert store.logins.find(token, 100) is None
    assert store.logins.find(token + "x", 50) is None
    other, others_token = store.logins.begin(key.key, 100)
    assert other.csrf != login.csrf
    store.logins.end(others_token)
    assert store.logins.find(others_token, 50) is None
    store.keys.revoke(key.key, 60)
    assert store.logins.find(token, 61) is None


def test_logins_that_are_over_are_forgotten(store):
    key, _ = store.keys.create("web", ["review"], 1)
    _, token = store.logins.begin(key.key, 100)
    store.logins.begin(key.key, 50)
    store.logins.forget(50)
    assert store.logins.find(token, 60) is not None
    assert everything_in(store, "demur_logins").count(key.key) == 1
