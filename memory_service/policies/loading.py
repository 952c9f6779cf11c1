"""Loads write policies that are named in the settings."""

from __future__ import annotations

import importlib
import inspect

from memory_service.policies.base import CannotLoadPolicy, WritePolicy


def load_class(path: str) -> WritePolicy:
    """Return an instance of the class at an import path, "module:Class". Raises CannotLoadPolicy.

    The class is called without arguments. Its code runs in the server.
    """
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name.isidentifier():
        raise CannotLoadPolicy(f"{path!r} is not MODULE:CLASS")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
        policy = found()
    except Exception as error:
        # The module may raise anything; the operator needs its text.
        raise CannotLoadPolicy(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(policy, WritePolicy):
        raise CannotLoadPolicy(f"{path} is not a WritePolicy (memory_service.policies.base)")
    if not inspect.iscoroutinefunction(policy.judge):
        raise CannotLoadPolicy(f"{path}.judge is not async")
    return policy
