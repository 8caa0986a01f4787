"""How a model is asked: to answer (`templates`), in a conversation too (`conversations`), and to judge (`judging`).

Never sees gold.
"""

from __future__ import annotations

from demur.prompts.judging import JudgePrompt, judge_prompt
from demur.prompts.templates import NAMED, Prompt, Template, read_template, template_of

__all__ = ["NAMED", "JudgePrompt", "Prompt", "Template", "judge_prompt", "read_template", "template_of"]
