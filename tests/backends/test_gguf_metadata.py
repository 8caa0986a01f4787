"""Fields of GGUF files, as the gguf package writes them; damaged files end in one line."""

from __future__ import annotations

import contextlib

import gguf
import pytest

from demur.backends.gguf_metadata import gguf_fields
from demur.errors import BackendError


@pytest.fixture
def path(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "Ü", ""])
    writer.add_array("numbers", [1.5, 2.5])
    writer.add_uint32("tokenizer.ggml.bos_token_id", 0)
    writer.add_bool("flag", True)
    writer.add_string("tokenizer.chat_template", "{{ messages }}é")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return tmp_path / "m.gguf"


def test_wanted_fields_are_read_and_others_are_stepped_over(path):
    wanted = ["tokenizer.chat_template", "tokenizer.ggml.tokens", "tokenizer.ggml.bos_token_id", "none"]
    assert gguf_fields(path, wanted) == {
        "tokenizer.ggml.tokens": ["<s>", "Ü", ""],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.chat_template": "{{ messages }}é",
    }


def test_a_damaged_file_ends_in_one_line_wherever_it_is_cut_or_changed(path):
    whole = path.read_bytes()
    for at in range(0, len(whole), 3):
        for damaged in (whole[:at], whole[:at] + b"\xff" * 8 + whole[at + 8 :]):
            path.write_bytes(damaged)
            with contextlib.suppress(BackendError):
                gguf_fields(path, ["none"])
