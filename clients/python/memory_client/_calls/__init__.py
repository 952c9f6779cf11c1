"""The RPCs without their transport: what both clients share."""
