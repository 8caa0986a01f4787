"""`demur export --batch` and `demur import --batch`: what a run lacks as requests, and their answers put into it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demur.store import Store
from loopback import choice, error


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def answer(body):
    """What the model says, by question and seed alone, so that a batch and an endpoint give the same."""
    a, b = body["messages"][-1]["content"].split("\n")[0].removeprefix("What is ").removesuffix("?").split(" + ")
    seeds = [body.get("seed", 0) + k for k in range(body.get("n", 1))]
    choices = [
        choice(f"So \\boxed{{{int(a) + int(b) + seed % 2}}}", [-0.1, -0.2 - seed % 5 / 10], index=k)
        for k, seed in enumerate(seeds)
    ]
    return {"choices": choices, "usage": {"completion_tokens": 2 * len(seeds)}, "model": body["model"]}


def served(number, body, request):
    from aiohttp import web

    return web.json_response(answer(body))


def mostly(body):
    """As `answer`, but of one mind about most questions, so that a stopping rule has something to end."""
    said = answer(body)
    a, b = body["messages"][-1]["content"].split("\n")[0].removeprefix("What is ").removesuffix("?").split(" + ")
    if (int(a) + int(b)) % 3:
        for one in said["choices"]:
            one["message"]["content"] = f"So \\boxed{{{int(a) + int(b)}}}"
    return said


def served_mostly(number, body, request):
    from aiohttp import web

    return web.json_response(mostly(body))


def result(request, **changes):
    """A line of an output file, as OpenAI's service writes it."""
    response = {"status_code": 200, "request_id": "r", "body": answer(request["body"])}
    return {"id": "batch_req_1", "custom_id": request["custom_id"], "response": response, "error": None} | changes


def write(name, records):
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return name


def read(name):
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


SAMPLE = ("builtin:addition", "--limit", 6, "-m", 4, "--model", "adder")
NOWHERE = ("--base-url", "http://127.0.0.1:9/v1")


@pytest.fixture
def prepared(demur):
    """A run that nobody sampled yet, and the requests for it."""
    ran = demur("sample", *SAMPLE, *NOWHERE, "--prepare", "-o", "run.db")
    assert ran.code == 0, ran.err
    assert "demur export run.db --batch" in ran.out
    ran = demur("export", "run.db", "--batch", "requests.jsonl")
    assert ran.code == 0, ran.err
    return read("requests.jsonl")


def stored(place="run.db"):
    """Every path of a run but how long it took, by problem and in order."""
    with Store(place) as store:
        return {
            pool.problem.id: [
                (path.answer, path.text, {k: v for k, v in path.extra.items() if k != "latency"}) for path in pool.paths
            ]
            for pool in store.run().pools(with_texts=True, complete=False)
        }


def test_paths_from_a_batch_are_those_that_the_sampler_would_have_drawn(demur, server, prepared):
    """Requests are what an endpoint is sent, word for word; paths, answers and log-probabilities are the same."""
    server.behave = served
    ran = demur("sample", *SAMPLE, "--base-url", server.url, "-o", "live.db")
    assert ran.code == 0, ran.err
    assert demur("import", "--batch", write("out.jsonl", map(result, prepared)), "-o", "run.db").code == 0
    assert stored() == stored("live.db")
    # With a score to come, the first paths are asked for one by one; the rest is the same.
    whole = [body for body in server.requests if body.get("n") == 4]
    assert len(whole) >= 4
    assert all(body in [request["body"] for request in prepared] for body in whole)


def test_a_request_asks_for_all_paths_of_a_problem_at_once(prepared):
    assert len(prepared) == 6
    for request in prepared:
        assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions")
        assert request["body"]["n"] == 4
        assert request["body"]["logprobs"] is True
        assert len(request["custom_id"]) <= 64
    assert len({request["custom_id"] for request in prepared}) == 6


def test_a_server_with_a_smaller_n_gets_several_requests_whose_seeds_go_on(demur, prepared):
    assert demur("export", "run.db", "--batch", "small.jsonl", "--largest-n", 3, "--no-logprobs").code == 0
    small = read("small.jsonl")
    assert [request["body"].get("n", 1) for request in small] == [3, 1] * 6
    assert "logprobs" not in small[0]["body"]
    assert small[1]["body"]["seed"] == small[0]["body"]["seed"] + 3
    assert small[0]["body"]["seed"] == prepared[0]["body"]["seed"]


def test_many_requests_go_to_several_files(demur, prepared):
    ran = demur("export", "run.db", "--batch", "parts.jsonl", "--batch-lines", 4, "--json")
    assert ran.json["files"] == ["parts-1.jsonl", "parts-2.jsonl"]
    assert read("parts-1.jsonl") + read("parts-2.jsonl") == prepared
    assert not Path("parts.jsonl").exists()


def test_files_of_an_earlier_export_are_told_so_that_nobody_sends_them_again(demur, prepared):
    demur("export", "run.db", "--batch", "parts.jsonl", "--batch-lines", 2)
    ran = demur("export", "run.db", "--batch", "parts.jsonl", "--batch-lines", 4)
    assert "not to be sent again: parts-3.jsonl" in ran.out
    demur("import", "--batch", write("out.jsonl", map(result, prepared)), "-o", "run.db")
    assert demur("export", "run.db", "--batch", "parts.jsonl", "--json").json["earlier"] == [
        f"parts-{number}.jsonl" for number in (1, 2, 3)
    ]
    ran = demur("export", "run.db", "--batch", "requests.jsonl")
    assert "lacks no path" in ran.out
    assert "not to be sent again: requests.jsonl" in ran.out


@pytest.mark.parametrize("verb", [("import", "-o", "other.db"), ("calibrate",), ("answers", "-o", "classed.jsonl")])
def test_files_of_a_batch_are_no_pools_and_the_way_is_told(demur, prepared, verb):
    write("out.jsonl", map(result, prepared))
    for file in ("requests.jsonl", "out.jsonl"):
        ran = demur(verb[0], file, *verb[1:])
        assert ran.code == 2
        assert f"{file} holds requests or answers of a batch, and no pools; put answers into the run" in ran.err
        assert "with `demur import` and --batch" in ran.err


def test_no_part_takes_the_place_of_something_else(demur, pools, prepared):
    pools.rename("parts-2.jsonl")
    before = Path("parts-2.jsonl").read_bytes()
    ran = demur("export", "run.db", "--batch", "parts.jsonl", "--batch-lines", 4)
    assert ran.code == 2
    assert "parts-2.jsonl is there already and holds pools" in ran.err
    assert Path("parts-2.jsonl").read_bytes() == before


def test_an_export_after_partial_results_asks_for_the_rest_alone(demur, prepared):
    """Three answers came, one of them short of a path, one request failed, two were never answered."""
    short = result(prepared[2])
    short["response"]["body"]["choices"].pop(1)
    expired = {"code": "batch_expired", "message": "This request could not be executed before the window expired."}
    failed = result(prepared[3], response=None, error=expired)
    write("out.jsonl", [result(prepared[0]), result(prepared[1]), short])
    ran = demur("import", "--batch", "out.jsonl", write("errors.jsonl", [failed]), "-o", "run.db", "--json")
    assert ran.code == 0, ran.err
    assert ran.json == {"run": "run", "lines": 4, "saved": 11, "there": 0, "short": 1, "lacking": 13,
                        "models": {"adder": 11}, "failed": {"batch_expired": 1}, "foreign": {}}  # fmt: skip
    assert demur("export", "run.db", "--batch", "rest.jsonl").code == 0
    rest = read("rest.jsonl")
    assert [request["body"].get("n", 1) for request in rest] == [1, 4, 4, 4]
    assert rest[1:] == prepared[3:]
    assert rest[0]["body"]["seed"] == prepared[2]["body"]["seed"] + 1
    ran = demur("import", "--batch", write("more.jsonl", map(result, rest)), "-o", "run.db")
    assert "the run lacks none" in ran.out
    seeds = [path["seed"] for _, _, path in stored()[sorted(stored())[2]]]
    assert seeds == list(range(seeds[0], seeds[0] + 4))
    ran = demur("export", "run.db", "--batch", "none.jsonl")
    assert ran.code == 0
    assert "lacks no path" in ran.out
    assert not Path("none.jsonl").exists()


def test_no_path_is_stored_twice(demur, prepared):
    """The same file again, and an answer that stands twice in a file with other words: the first stays."""
    twice = [result(request) for request in prepared]
    twice += [json.loads(json.dumps(twice[0]).replace("So", "Thus"))]
    ran = demur("import", "--batch", write("out.jsonl", twice), "-o", "run.db", "--json")
    assert (ran.json["saved"], ran.json["there"]) == (24, 4)
    before = stored()
    assert all(text.startswith("So") for paths in before.values() for _, text, _ in paths)
    ran = demur("import", "--batch", "out.jsonl", "-o", "run.db", "--json")
    assert (ran.json["saved"], ran.json["there"]) == (0, 28)
    assert stored() == before


def test_a_failure_and_then_a_success_of_one_request_is_a_success(demur, prepared):
    failed = result(prepared[0], response={"status_code": 500, "body": {"error": {"type": "server_error"}}})
    ran = demur("import", "--batch", write("out.jsonl", [failed, result(prepared[0])]), "-o", "run.db", "--json")
    assert (ran.json["saved"], ran.json["failed"]) == (4, {"500 server_error": 1})


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ({"response": None, "error": {"code": "batch_cancelled", "message": "stop"}}, "batch_cancelled"),
        ({"response": {"status_code": 400, "body": {"error": {"message": "no", "code": "n"}}}, "error": None}, "400 n"),
        ({"response": {"status_code": 429, "body": None}, "error": None}, "429"),
        # as vLLM writes it
        ({"response": {"status_code": 400, "request_id": "v", "body": None},
          "error": {"error": {"message": "too long", "type": "BadRequestError", "code": 400}}}, "400 BadRequestError"),
        ({"response": {"status_code": 200, "body": {"choices": []}}, "error": None}, "the answer holds no choices"),
        ({"response": {"status_code": 200, "body": None}, "error": None}, "the answer holds no choices"),
        ({"response": None, "error": "out of memory"}, "out of memory"),
        ({"response": None, "error": None}, "no answer, and no reason given"),
    ],
)  # fmt: skip
def test_failures_are_counted_by_cause(demur, prepared, line, cause):
    failed = [{"id": "x", "custom_id": request["custom_id"], **line} for request in prepared[:2]]
    ran = demur("import", "--batch", write("errors.jsonl", failed), "-o", "run.db", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["failed"], ran.json["saved"], ran.json["lacking"]) == ({cause: 2}, 0, 24)


@pytest.mark.parametrize(
    ("indexes", "saved"),
    [
        ((0, 1, 2, 3), 4), ((3, 1, 0, 2), 4), ((0, 2), 2), ((None,) * 4, 4), ((0, 1, 2, 3, 4), 4),
        ((-1, 0, 1, 2), 0), ((0, 1, 2, 10**20), 0), ((0, 0, 0, 0), 0), ((0, 1, 1, 2), 0), ((0, 1, 2, 4), 0),
        ((0, 1, 2, None), 0), ((False, True, 2, 3), 0), (("0", "1", "2", "3"), 0), ((0.0, 1.0, 2.0, 3.0), 0),
    ],
)  # fmt: skip
def test_choices_become_paths_only_where_their_indexes_are_places(demur, prepared, indexes, saved):
    """Four choices of index 0 may be one path four times; what cannot be placed is counted and asked for again."""
    line = result(prepared[0])
    some = line["response"]["body"]["choices"]
    line["response"]["body"]["choices"] = [some[at % 4] | {"index": told} for at, told in enumerate(indexes)]
    ran = demur("import", "--batch", write("out.jsonl", [line]), "-o", "run.db", "--json")
    failed = {} if saved else {"choices whose indexes are not 0, 1, 2, …, each once": 1}
    assert (ran.code, ran.json["saved"], ran.json["failed"]) == (0, saved, failed)
    assert ran.json["lacking"] == 24 - saved


@pytest.mark.parametrize("choice", [{}, {"index": 0}, {"index": 0, "message": None}, {"index": 0, "text": None}])
def test_a_choice_that_says_nothing_at_all_is_no_path(demur, prepared, choice):
    line = result(prepared[0])
    line["response"]["body"]["choices"] = [choice]
    ran = demur("import", "--batch", write("out.jsonl", [line]), "-o", "run.db", "--json")
    assert (ran.json["saved"], ran.json["failed"]) == (0, {"a choice without message and text": 1})


def test_results_as_vllm_writes_them(demur, prepared):
    lines = []
    for request in prepared:
        body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, **answer(request["body"]),
                "prompt_logprobs": None, "kv_transfer_params": None}  # fmt: skip
        for one in body["choices"]:
            one["message"] |= {"reasoning": None, "tool_calls": [], "refusal": None}
        response = {"status_code": 200, "request_id": "vllm-batch-1", "body": body}
        lines.append({"id": "vllm-1", "custom_id": request["custom_id"], "response": response, "error": None})
    ran = demur("import", "--batch", write("out.jsonl", lines), "-o", "run.db", "--json")
    assert (ran.json["saved"], ran.json["lacking"]) == (24, 0)


def changed(custom_id):
    """The id of other paths, its check digits left as they were."""
    parts = custom_id.split("-")
    return "-".join([*parts[:3], "9", *parts[4:]])


@pytest.mark.parametrize(
    ("foreign", "told"),
    [
        (lambda named: "request-17", "no id that demur gives"),
        (changed, "an id that was changed"),
        (lambda named: named + " ", "no id that demur gives"),
    ],
)
def test_foreign_ids_are_refused_in_one_line_and_what_is_the_runs_own_is_kept(demur, prepared, foreign, told):
    lines = [result(request) for request in prepared]
    lines[2]["custom_id"] = foreign(lines[2]["custom_id"])
    ran = demur("import", "--batch", write("out.jsonl", lines), "-o", "run.db")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "out.jsonl, line 3" in ran.err
    assert told in ran.err
    assert "1 of 6 answers" in ran.err
    assert sum(map(len, stored().values())) == 20


def test_answers_of_another_run_are_foreign(demur, prepared):
    """Of another name, of another temperature, and of problems that the run does not have."""
    others = {"other.db": ("--run", "second"), "hot.db": ("--temperature", 1), "more.db": ("--shuffle", 5)}
    for place, flags in others.items():
        assert demur("sample", *SAMPLE, *NOWHERE, "--prepare", "-o", place, *flags).code == 0
        assert demur("export", place, "--batch", "theirs.jsonl").code == 0
        theirs = read("theirs.jsonl")
        ran = demur("import", "--batch", write("out.jsonl", map(result, theirs)), "-o", "run.db")
        ours = {request["custom_id"] for request in prepared}
        assert ran.code == 2, place
        assert f"{sum(one['custom_id'] not in ours for one in theirs)} of 6 answers" in ran.err
        assert ("of another run" if place != "more.db" else "of a problem that the run") in ran.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"response": {}, "error": null}', "must have a `custom_id`"),
        ('{"custom_id": 7, "response": {}}', "got 7; those before are in the run; give it the id of"),
        ('{"custom_id": "x"}', "with `response` or `error`"),
        ('{"custom_id": "x", "method": "POST", "url": "/", "body": {}}', "not its requests"),
        ("[1]", "must have a `custom_id`"),
        ('{"custom_id": "demur-', "expected one whole JSON object"),
    ],
)
def test_a_line_that_is_no_answer_is_named_and_what_stands_before_is_kept(demur, prepared, line, told):
    Path("out.jsonl").write_text(json.dumps(result(prepared[0])) + "\n" + line)
    ran = demur("import", "--batch", "out.jsonl", "-o", "run.db")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert told in ran.err
    assert "out.jsonl, line 2" in ran.err
    assert sum(map(len, stored().values())) == 4


def test_a_batch_and_the_sampler_may_share_a_run(demur, server, prepared):
    """What a batch did not bring, the same sample command draws, with the seeds it would have had."""
    server.behave = served
    assert demur("import", "--batch", write("out.jsonl", map(result, prepared[:3])), "-o", "run.db").code == 0
    ran = demur("sample", *SAMPLE, "--base-url", server.url, "-o", "run.db", "--json")
    assert (ran.code, ran.json["saved"]) == (0, 12)
    assert demur("sample", *SAMPLE, "--base-url", server.url, "-o", "live.db").code == 0
    assert stored() == stored("live.db")


def test_a_batch_without_logprobs_is_not_drawn_again(demur, server, prepared):
    """Whoever asks for none on purpose is not made to pay for all paths once more."""
    server.behave = lambda number, body, request: error(500, "must not be asked")
    assert demur("export", "run.db", "--batch", "mute.jsonl", "--no-logprobs").code == 0
    lines = [result(request) for request in read("mute.jsonl")]
    for one in (one for line in lines for one in line["response"]["body"]["choices"]):
        one["logprobs"] = None
    assert demur("import", "--batch", write("out.jsonl", lines), "-o", "run.db").code == 0
    before = stored()
    demur("sample", *SAMPLE, "--base-url", server.url, "-o", "run.db")
    assert server.requests == []
    assert stored() == before


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("export", "run.db", "--batch", "a.txt"), "name it .jsonl"),
        (("export", "run.db", "--batch", "a.jsonl", "-o", "b.jsonl"), "--batch writes requests"),
        (("export", "run.db", "--largest-n", "2", "-o", "b.jsonl"), "--largest-n goes with --batch"),
        (("export", "run.db"), "name a file to write"),
        (("import", "--batch", "none.jsonl", "-o", "run.db"), "there is no file none.jsonl"),
        (("import", "--batch", "requests.jsonl", "-o", "absent.db"), "absent.db"),
        (("import", "--batch", "requests.jsonl", "-o", "run.db", "--labels-by", "match"), "for logs of inspect"),
        (("import", "--batch", "requests.jsonl", "-o", "run.db", "--run", "x"), "holds no run 'x'"),
        (("sample", "builtin:addition", "--prepare", "-o", "small.db"), "only the model of an endpoint"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(demur, prepared, command, told):
    ran = demur(*command)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert told in ran.err


def test_recorded_pools_have_no_requests(demur, pools):
    assert demur("import", pools, "-o", "recorded.db").code == 0
    ran = demur("export", "recorded.db", "--batch", "a.jsonl")
    assert ran.code == 2
    assert "demur sample` and --prepare" in ran.err


def test_the_command_that_asks_for_a_prepared_run_has_its_seed(demur):
    """Pasted as it is, it asks for the paths that `sample` with that seed would draw."""
    ran = demur("sample", *SAMPLE, *NOWHERE, "--prepare", "--seed", 5, "-o", "run.db")
    assert "demur export run.db --batch requests.jsonl --seed 5\n" in ran.out
    assert "--seed" not in demur("sample", *SAMPLE, *NOWHERE, "--prepare", "-o", "other.db").out


def test_a_run_under_a_stopping_rule_is_finished_wave_by_wave_as_the_sampler_would(demur, server):
    """Each export asks for what the rule wants next, and for nothing of a pool that it has ended."""
    server.behave = served_mostly
    rule = ("builtin:addition", "--limit", 8, "-m", 12, "--model", "adder", "--stop", "beta:0.9", "--wave", 4)
    assert demur("sample", *rule, "--base-url", server.url, "-o", "live.db").code == 0
    assert demur("sample", *rule, *NOWHERE, "--prepare", "-o", "run.db").code == 0
    waves = []
    while True:
        ran = demur("export", "run.db", "--batch", "wave.jsonl", "--json")
        assert ran.code == 0, ran.err
        if not ran.json["files"]:
            break
        waves.append(ran.json["paths"])
        assert len(waves) <= 3
        answers = [result(r, response={"status_code": 200, "body": mostly(r["body"])}) for r in read("wave.jsonl")]
        ran = demur("import", "--batch", write("out.jsonl", answers), "-o", "run.db", "--json")
        assert ran.code == 0, ran.err
    assert waves[0] == 32
    assert ran.json["paths"] == 0
    assert stored() == stored("live.db")
    sizes = {len(paths) for paths in stored().values()}
    assert len(sizes) > 1, "the rule ends some pools early, and not all"
    assert sum(waves) == sum(map(len, stored().values()))


def test_a_run_that_is_being_sampled_is_not_exported_lest_paths_be_paid_for_twice(demur, prepared):
    """Neither what the sampler has claimed nor what it will: it draws all that the run lacks."""
    with Store("run.db") as store:
        worker = store.run().at_work("sample", 2)
        assert worker.claim(dict.fromkeys(range(6), 4), 2, 6).numbers == (0, 1)
        ran = demur("export", "run.db", "--batch", "again.jsonl")
        worker.end()
    assert (ran.code, ran.err.count("\n"), Path("again.jsonl").exists()) == (2, 1, False)
    assert "with 8 paths of 2 problems claimed: a batch would have them paid for twice" in ran.err
    assert "export when that has ended, or end it with Ctrl-C first" in ran.err
    assert demur("export", "run.db", "--batch", "again.jsonl").code == 0
    assert read("again.jsonl") == prepared


def test_a_sampler_that_died_and_one_that_scores_do_not_keep_a_run_from_being_exported(demur, prepared):
    with Store("run.db") as store:
        run = store.run()
        dead, scorer = run.at_work("sample", 2), run.at_work("score:0:judge", 2)
        dead.claim(dict.fromkeys(range(6), 4), 2, 6)
        with run.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE demur_workers SET process = NULL, until = 0 WHERE task = 'sample'")
        ran = demur("export", "run.db", "--batch", "again.jsonl")
        for worker in (dead, scorer):
            worker.end()
    assert ran.code == 0, ran.err
    assert read("again.jsonl") == prepared
