"""The RPCs without their transport, shared by both clients."""
