"""The inside of `rewards.sandbox`: these files run in processes of their own.

They import one another by their bare names, since nothing of `rewards` is loaded there.
"""
