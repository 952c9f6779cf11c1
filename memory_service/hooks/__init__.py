"""Hooks of coding agents: memory before the model reads a prompt, and a record of the conversation after it.

A hook is a process that starts at every prompt. It calls gRPC without the client, whose import takes longer
than the whole hook.
"""
