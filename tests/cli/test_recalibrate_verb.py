"""`demur recalibrate`: what it says, what it refuses, and what it leaves in the store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audited import decided_at_once, is_right, policy_on, pools_of
from demur.policy.policy import Policy
from demur.policy.signed_documents import document_of
from demur.store.service import ServiceStore


@pytest.fixture
def service(tmp_path):
    """A store with audits of a policy, most of them judged."""
    old = policy_on(pools_of(200, 1))
    with ServiceStore(tmp_path / "service.db", create=True) as store:
        assert store.policies.register("sums", old.document(), old.fingerprint, 1).policy == 1
        pools = pools_of(200, 2, prefix="r")
        made = decided_at_once(old, pools)
        store.decisions.add(made)
        for pool, one in zip(pools[:180], made, strict=False):
            store.feedback.give(
                one.request, "ann", 5, verdict="right" if is_right(pool, one) else "wrong", source="review"
            )
        yield store


def test_without_a_word_the_store_stays_as_it_is(demur, service, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ran = demur("recalibrate", "--policy-name", "sums", "-o", "new.json")
    assert (ran.code, ran.err) == (0, "")
    assert "200 audited requests of sums:v1" in ran.out
    assert "180 of these 200 questions have a label" in ran.out
    assert "flatters it" in ran.out
    assert "Only audits calibrate" in ran.out
    table = ran.out[ran.out.index("Old and new") : ran.out.index("The new version is compared")]
    assert max(map(len, table.splitlines())) <= 80
    assert [row.version for row in service.policies.all()] == [1]
    assert Policy.load("new.json").n == 200


def test_no_version_that_no_reviewer_labelled_answers(demur, service):
    old = Policy.of_document(service.policies.all()[0].document)
    row = service.policies.propose("others", old.document(), old.fingerprint, 1)
    made = [replace(one, policy=row.policy) for one in decided_at_once(old, pools_of(100, 4, prefix="o"))]
    service.decisions.add(made)
    for one in made:
        service.feedback.give(one.request, "k1", 5, verdict="right")
    plain = demur("recalibrate", "--policy-name", "others", "--swap")
    assert (plain.code, "has a label from a reviewer" in plain.err) == (2, True)
    looked = demur("recalibrate", "--policy-name", "others", "--count-callers", "--json").json
    assert (looked["audits"]["callers_alone"], looked["audits"]["callers_count"]) == (100, True)
    assert "callers of the service" in looked["points"][0]["promise"]
    for put in ("--swap", "--shadow"):
        refused = demur("recalibrate", "--policy-name", "others", "--count-callers", put)
        assert (refused.code, "no reviewer labelled any of the 100 audited" in refused.err) == (2, True)
    service.feedback.give(made[0].request, "ann", 6, verdict="right", source="review")
    swapped = demur("recalibrate", "--policy-name", "others", "--count-callers", "--swap", "--json").json
    assert (swapped["state"], swapped["audits"]["labelled_by_reviewers"]) == ("active", 1)


def test_failed_audits_and_mixed_models_are_warned_of(demur, service):
    quiet = demur("recalibrate", "--policy-name", "sums", "--json").json
    old = Policy.of_document(service.policies.all()[0].document)
    more = decided_at_once(old, pools_of(50, 3, prefix="s"), reported_model="adder-2")
    failed = [replace(one, outcome="failed", vote_key=None) for one in more[:40]]
    service.decisions.add([*failed, replace(more[40], reported_model="adder-1"), *more[41:]])
    told = demur("recalibrate", "--policy-name", "sums", "--json").json
    assert quiet["warnings"] == []
    assert told["warnings"] == [
        "audits of 2 reported models are taken together: adder-1, adder-2",
        "40 of 250 audits failed and are left out: where waves answer such requests before the path that fails, up to "
        "16.0% more than alpha may be answered wrongly",
    ]


def test_a_shadow_then_a_swap_then_back(demur, service):
    shadow = demur("recalibrate", "--policy-name", "sums", "--hold-out", "0.5", "--shadow", "--json").json
    assert (shadow["new_version"], shadow["state"], shadow["compared_on"]) == (2, "shadow", "held_out")
    assert shadow["audits"]["held_out"] == 100
    assert "beside v1" in demur("recalibrate", "--policy-name", "sums", "--compare").out
    assert demur("recalibrate", "--policy-name", "sums", "--activate", "v2", "--json").json["versions"] == {
        "1": "retired",
        "2": "active",
    }
    refused = demur("recalibrate", "--policy-name", "sums", "--retire", "2")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "version 1 active, version 2 retired" in demur("recalibrate", "--policy-name", "sums", "--activate", "1").out
    assert {event.kind for event in service.events.latest()} == {"version"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--policy-name", "others"], "no policy named 'others'; it has sums"),
        (["--policy-name", "\x1b[31m<script>"], "no policy named"),
        (["--policy-name", "sums", "--shadow", "--swap"], "exclude each other"),
        (["--policy-name", "sums", "--compare"], "no shadow to compare with"),
        (["--policy-name", "sums", "--compare", "--alpha", "0.1"], "makes no new version"),
        (["--policy-name", "sums", "--activate", "7\x1b[2J"], "has no version"),
        (["--policy-name", "sums", "--since", "yesterday"], "--since takes a time"),
        (["--policy-name", "sums", "--since", "2027-01-01"], "no audited request"),
        (["--policy-name", "sums", "--until", "1970-01-01T00:00:00Z"], "no audited request"),
        (["--policy-name", "sums", "--alpha", "0.001", "--swap"], "version 1 of sums stays as it is"),
        (["--policy-name", "sums", "--store", "nothing.db"], "there is no store nothing.db"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(demur, service, flags, said):
    ran = demur("recalibrate", *flags)
    assert ran.code == 2
    errors = [line for line in ran.err.splitlines() if not line.startswith("warning")]
    assert len(errors) == 1
    assert said in errors[0]
    assert "\x1b" not in ran.err
    assert [row.version for row in service.policies.all()] == [1]


def test_too_few_audits_are_said_to_be_too_few(demur, service):
    ran = demur("recalibrate", "--policy-name", "sums", "--alpha", "0.001")
    assert ran.code == 0
    assert "too few for the promise" in ran.out


def test_with_a_key_versions_are_signed_and_unsigned_ones_refused(demur, service, tmp_path):
    (tmp_path / "key").write_text("k" * 40)
    refused = demur("recalibrate", "--policy-name", "sums", "--key-file", "key")
    assert (refused.code, "not signed" in refused.err) == (2, True)
    row = service.policies.all()[0]
    signed = document_of(Policy.of_document(row.document), "k" * 40)
    numbered = service.policies.propose("sums", signed, row.fingerprint, 2).policy
    made = demur("recalibrate", "--policy-name", "sums", "--all-versions", "--swap", "--key-file", "key", "--json")
    assert made.json["new_version"] == numbered + 1
    assert "signature" in service.policies.get(numbered + 1).document
