"""What people found goes on: as pools and labels that demur calibrates on, and as a table that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import demur
from demur.cli import app
from demur.pools.files import source_of_file
from demur.store.service import ReviewFilter, ServiceStore
from reviewing import Person, ask, nasty, reviewed_app
from serving import listening


@pytest.fixture
def store(tmp_path):
    with ServiceStore(tmp_path / "service.db", create=True) as opened:
        yield opened


@pytest.fixture
def judged(upstream, sums_policy, store):
    """A service all of whose 40 requests are audits, 30 of them judged by the sum."""
    with listening(reviewed_app(upstream.url, sums_policy, store, audit_share=1.0)) as address:
        ask(address, *range(100, 140))
        person = Person(address)
        for _ in range(30):
            item = person.claim()
            true = str(int(item["question"].split()[2]) + 1)
            assert person.judge(item, answer=true).status_code == 200
        yield address


def saved(address, tmp_path, **query):
    reply = Person(address).get("labelled", **query)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-disposition"].startswith("attachment")
    file = tmp_path / reply.headers["content-disposition"].split('"')[1]
    file.write_bytes(reply.content)
    return file


def cli(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_pools_go_through_import_and_calibrate_and_make_a_policy_of_the_same_pipeline(judged, sums_policy, tmp_path):
    file = saved(judged, tmp_path, policy=1)
    assert cli("import", file, "-o", tmp_path / "run.db", "--json")["problems"] == 40
    how = ("--score", "perplexity", "--alpha", "0.3", "--partly-labelled", "--json")
    for place in (file, tmp_path / "run.db"):
        told = cli("calibrate", place, *how, "-o", tmp_path / f"{place.name}.json")
        assert told["problems"] == 40
        policy = demur.Policy.load(tmp_path / f"{place.name}.json")
        assert policy.description.differences(sums_policy.description) == []


def test_what_nobody_judged_counts_as_wrong(judged, tmp_path):
    source = source_of_file(saved(judged, tmp_path, policy=1))
    known = {pool.problem.question: pool.problem.gold for pool in source.pools}
    assert len(known) == 40
    assert sum(1 for gold in known.values() if gold) == 30
    assert all(int(gold[0]) == int(question.split()[2]) + 1 for question, gold in known.items() if gold)


def test_labels_go_through_calibrate_with_their_pools(judged, store, tmp_path):
    pools, labels = (saved(judged, tmp_path, policy=1, form=form) for form in ("pools", "labels"))
    told = cli("calibrate", pools, "--score", "perplexity", "--label-file", labels, "--json")
    assert told["problems"] == 40
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    assert lines[0]["format"] == "demur-labels"
    assert len(lines) == 31
    for line in lines[1:]:
        made = store.decisions.get(line["id"])
        right = int(made.winner) == int(made.question.split()[2]) + 1
        assert line["label"] == ("right" if right else "wrong")


def test_where_two_people_differ_the_last_word_counts_and_is_marked(judged, store, tmp_path):
    """As in monitors and in `recalibrate`."""
    request = store.reviews.queue(ReviewFilter(state="done"))[0].request
    (word,) = store.feedback.history(request)
    other = {"right": "wrong", "wrong": "right"}[word.verdict]
    store.feedback.give(request, "another", word.at + 1, verdict=other, source="review")
    record = record_of(judged, tmp_path, request)
    assert (record["verdict"], record["agree"], "gold" in record) == (other, False, other == "right")
    labels = saved(judged, tmp_path, policy=1, form="labels").read_text().splitlines()
    assert [json.loads(line)["label"] for line in labels if request in line] == [other]
    table = list(csv.DictReader(saved(judged, tmp_path, policy=1, form="csv").read_text().splitlines()))
    assert [row["agree"] for row in table if row["request"] == request] == ["no"]


def test_who_asked_neither_overrules_nor_contradicts_who_reviewed(judged, store, tmp_path):
    """The feedback is the last word, and the review counts."""
    request = store.reviews.queue(ReviewFilter(state="done"))[0].request
    (word,) = store.feedback.history(request)
    other = {"right": "wrong", "wrong": "right"}[word.verdict]
    store.feedback.give(request, "who asked", word.at + 1, verdict=other)
    record = record_of(judged, tmp_path, request)
    assert (record["verdict"], "agree" in record) == (word.verdict, False)


def test_what_callers_alone_say_is_no_label(judged, store, tmp_path):
    request = store.reviews.queue(ReviewFilter(state="open"))[0].request
    store.feedback.give(request, "who asked", 9, verdict="right", answer=store.decisions.get(request).winner)
    record = record_of(judged, tmp_path, request)
    assert ("verdict" in record, "gold" in record) == (False, False)
    assert request not in saved(judged, tmp_path, policy=1, form="labels").read_text()
    assert request not in saved(judged, tmp_path, policy=1, what="judged").read_text()
    table = list(csv.DictReader(saved(judged, tmp_path, policy=1, form="csv").read_text().splitlines()))
    assert [(row["verdict"], row["by"]) for row in table if row["request"] == request] == [("", "")]


def record_of(judged, tmp_path, request):
    lines = saved(judged, tmp_path, policy=1).read_text().splitlines()
    (record,) = [one for line in lines if (one := json.loads(line)).get("id") == request]
    return record


def test_a_true_answer_that_another_contradicts_is_no_second_right_answer(judged, store, tmp_path):
    """Either of two would count as right: the vote's own, and the one that somebody else has for it."""
    right, wrong = (
        next(item.request for item in store.reviews.queue(ReviewFilter(state="done"), limit=100)
             if store.feedback.history(item.request)[0].verdict == verdict)
        for verdict in ("right", "wrong")
    )  # fmt: skip
    for request in (right, wrong):
        said = store.feedback.history(request)[0]
        store.feedback.give(request, "another", said.at + 1, answer="17", source="review")  # without a verdict
        record = record_of(judged, tmp_path, request)
        assert (record["verdict"], record["gold"]) == ("wrong", "17")


def test_who_is_unsure_names_no_right_answer(judged, store, tmp_path):
    request = store.reviews.queue(ReviewFilter(state="open"))[0].request
    winner = store.decisions.get(request).winner
    store.feedback.give(request, "another", 9, verdict="unsure", answer=winner, source="review")
    record = record_of(judged, tmp_path, request)
    assert (record["verdict"], "gold" in record) == ("unsure", False)


def test_judged_ones_are_those_that_people_judged(judged, tmp_path):
    assert len(source_of_file(saved(judged, tmp_path, policy=1, what="judged")).pools) == 30


def test_pools_that_are_not_whole_are_left_out(upstream, sums_policy, store, tmp_path):
    whole, item = nasty("whole", "What?", reason="both")
    store.decisions.add([whole, replace(whole, request="cut", n_paths=9)], [item, replace(item, request="cut")])
    with listening(reviewed_app(upstream.url, sums_policy, store)) as address:
        source = source_of_file(saved(address, tmp_path, policy=1))
    assert [pool.problem.id for pool in source.pools] == ["whole"]


def test_once_texts_are_forgotten_judged_audits_do_not_stay_alone(judged, store):
    store.retention.forget_texts(2**52)
    lines = Person(judged).get("labelled", policy=1).text.splitlines()
    assert len(lines) == 1


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", '=HYPERLINK("x")']
)
def test_no_cell_of_the_table_is_a_formula(upstream, sums_policy, store, text):
    store.decisions.add(*[[part] for part in nasty("r", text, options=[text])])
    with listening(reviewed_app(upstream.url, sums_policy, store)) as address:
        person = Person(address)
        person.judge(person.claim(), verdict="wrong", answer=f"{text} or another")
        reply = person.get("labelled", what="judged", form="csv")
    assert reply.headers["content-type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(reply.content.decode(), newline=""))
    assert (row["verdict"], row["question"]) == ("wrong", f"'{text}")
    for cell in row.values():
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_what_is_asked_for_wrongly_gets_one_line(judged):
    person = Person(judged)
    for query, param in (({}, "policy"), ({"policy": 99}, "policy"), ({"policy": 1, "form": "xml"}, "form")):
        reply = person.get("labelled", **query)
        assert (reply.status_code in (400, 404), reply.json()["error"]["param"]) == (True, param)


def test_an_item_that_is_judged_while_a_file_is_written_is_in_it_once(judged, store, tmp_path, monkeypatch):
    person, states = Person(judged), []
    queue = store.reviews.queue

    def moving(wanted, **how):
        if wanted.state not in states:
            states.append(wanted.state)
            if wanted.state == "done":
                person.judge(person.claim(), verdict="unsure")
        return queue(wanted, **how)

    monkeypatch.setattr(store.reviews, "queue", moving)
    ids = [json.loads(line).get("id") for line in saved(judged, tmp_path, policy=1).read_text().splitlines()]
    assert len(ids) == len(set(ids)) == 41
