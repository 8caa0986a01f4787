"""Policies as documents in a store, signed where there is a key: what a file has a signature for, a row has too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from demur.descriptions import canonical
from demur.policy.policy import Policy
from demur.policy.signature import Key, check_signature, signature_of

_SIGNATURE = "signature"


def document_of(policy: Policy, key: Key | None = None) -> dict[str, Any]:
    """A policy as a document."""
    document = policy.document()
    return document if key is None else {**document, _SIGNATURE: signature_of(document, key)}


def is_of(document: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two documents hold one policy, signed or not."""
    return canonical(_bare(document)) == canonical(_bare(other))


def _bare(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != _SIGNATURE}


def policy_of(document: Mapping[str, Any], where: str, key: Key | None = None) -> Policy:
    """The policy of a document, checked as a file is; with a key, its signature too."""
    bare = _bare(document)
    if key is not None:
        check_signature(bare, document.get(_SIGNATURE), key, PurePath(where))
    return Policy.of_document(bare, where)
