"""Chat templates render as they should, and hostile ones in bounded time and memory."""

from __future__ import annotations

import resource

import pytest

from demur.backends.chat_template import LONGEST_TEMPLATE, ChatTemplate
from demur.errors import BackendError

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hallo, <b>Wölt</b> "}]
CHATML = (
    "{% for message in messages %}\n{{ '<|im_start|>' + message['role'] + '\n' + message.content | trim }}<|im_end|>\n"
    "  {% endfor %}\n{% if add_generation_prompt %}{% generation %}<|im_start|>assistant{% endgeneration %}{% endif %}"
)


def made(template, **limits) -> ChatTemplate:
    return ChatTemplate(template, "a model", extra="local", **limits)


def test_a_template_renders_as_models_expect():
    template = made(CHATML)
    said = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHallo, <b>Wölt</b><|im_end|>\n"
    assert template.render(CHAT, add_generation_prompt=False) == said
    assert template.render(CHAT, add_generation_prompt=True) == said + "<|im_start|>assistant"
    template.close()


def test_a_template_knows_its_tokens_and_what_it_is_told():
    template = made("{{ bos_token }}{% if enable_thinking is false %}quick{% endif %}{{ messages[0] | tojson }}")
    assert template.render(CHAT[:1], bos_token="<s>", enable_thinking=False) == (
        '<s>quick{"role": "system", "content": "Be brief."}'
    )


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('no system role') }}", "no system role"),
        ("{% for %}", "cannot be used"),
        ("{{ 1 / 0 }}", "cannot be used"),
        ("{{ messages.append(1) }}", "cannot be used"),
        ("{{ ''.__class__.__mro__ }}{{ ''.__class__.__mro__[1].__subclasses__() }}", "cannot be used"),
        ("{% include '/etc/passwd' %}", "cannot be used"),
    ],
)
def test_a_template_that_fails_says_so_and_the_next_chat_is_rendered(template, said):
    shown = made(template)
    for _ in range(2):
        with pytest.raises(BackendError, match=said):
            shown.render(CHAT)


HOSTILE = {
    "a loop": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "a long loop": "{% for i in range(10**9) %}a{% endfor %}",
    "a repeated letter": "{{ 'a' * 10**10 }}",
    "a repeated letter, unseen": "{% set x = 'a' * (messages | length * 10**10) %}",
    "a wide number": "{{ '%1000000000d' % 1 }}",
    "a wide field": "{{ '{:1000000000}'.format(1) }}",
    "a centred text": "{{ 'a' | center(10**10) }}",
    "doubling": "{% set n = namespace(x='aaaa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "a list": "{{ [0] * 10**10 }}",
    "a power": "{{ 10 ** (10 ** 10) }}",
    "a macro": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "much text": "{% for i in range(99999) %}{% for j in range(99) %}{{ messages[1].content }}{% endfor %}{% endfor %}",
    "lipsum": "{{ lipsum(n=100000) }}",
    "replace": "{{ ('a' * 10**6).replace('a', 'b' * 10**6) }}",
    "nested": "(" * 20_000,
    "deep": "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_stopped_and_costs_this_process_nothing(name):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    template = made(HOSTILE[name], seconds=30.0 if name == "nested" else 2.0, megabytes=256)
    if name == "nested":
        assert template.render(CHAT) == HOSTILE[name]
    else:
        with pytest.raises(BackendError, match=r"more time or memory|cannot be used"):
            template.render(CHAT)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
    template.close()


def test_a_stopped_template_renders_the_next_chat():
    template = made("{% if messages | length > 1 %}{{ 'a' * 10**10 }}{% endif %}{{ messages[0].content }}")
    for _ in range(2):
        with pytest.raises(BackendError, match="more time or memory"):
            template.render(CHAT)
        assert template.render(CHAT[:1]) == "Be brief."


def test_a_template_longer_than_any_is_refused():
    with pytest.raises(BackendError, match="which none needs"):
        made("a" * (LONGEST_TEMPLATE + 1))


def test_many_threads_get_each_its_own_chat():
    from concurrent.futures import ThreadPoolExecutor

    template = made("{{ messages[0].content }}")
    chats = [[{"role": "user", "content": str(number) * 500}] for number in range(60)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(template.render, chats)) == [chat[0]["content"] for chat in chats]
