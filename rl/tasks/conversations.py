"""Prompts and completions as data sets of preferences write them: texts, or lists of messages.

A prompt of messages becomes a conversation, and a completion the text of its last message, which
is the assistant's.
"""

from typing import Any

from rl.tasks.base import Prompt
from rl.tasks.sources import Record

Messages = list[dict[str, str]]


def prompt_of(record: Record, *completions: str) -> Prompt:
    """The record's prompt; without one, what the conversations in these fields begin with."""
    value = record.fields.get("prompt")
    if value is None:
        return _beginning(record, *completions)
    if isinstance(value, str) and value.strip():
        return value
    messages = _messages(value)
    if messages and messages[-1]["role"] != "assistant":
        return messages
    raise ValueError(
        f"{record.where}: field 'prompt' is {value!r:.80}. A text is expected there, or a list of "
        "messages {role, content} of which the last is not the assistant's"
    )


def completion_of(record: Record, field: str, prompt: Prompt) -> str:
    """The text of a field: a text after a text, one message of the assistant after messages.

    The messages may repeat the prompt before it.
    """
    if isinstance(prompt, str):
        return record.text(field)
    messages = _messages(record.fields.get(field))
    if messages and messages[-1]["role"] == "assistant" and messages[:-1] in ([], prompt):
        return messages[-1]["content"]
    raise ValueError(
        f"{record.where}: field {field!r} is {record.fields.get(field)!r:.80}. After a prompt of "
        "messages, one message of the assistant is expected there, alone or behind the prompt's"
    )


def _beginning(record: Record, *completions: str) -> Prompt:
    given = [_messages(record.fields.get(field)) for field in completions]
    beginnings = [messages[:-1] for messages in given if messages]
    first = beginnings[0] if beginnings else []
    if first and beginnings == [first] * len(completions):
        return first
    raise ValueError(
        f"{record.where}: field 'prompt' is missing, and {' and '.join(map(repr, completions))} "
        "are not conversations that begin with the same messages; it has "
        f"{', '.join(map(repr, record.fields)) or 'no fields'}"
    )


def _messages(value: Any) -> Messages | None:
    """Roles and contents, if that is what the value holds."""
    if not isinstance(value, list) or not value:
        return None
    messages: Messages = []
    for message in value:
        if not isinstance(message, dict):
            return None
        role, content = message.get("role"), message.get("content")
        if not (isinstance(role, str) and isinstance(content, str) and content.strip()):
            return None
        messages.append({"role": role, "content": content})
    return messages
