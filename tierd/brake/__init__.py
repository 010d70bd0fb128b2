"""The brake: a rule of Lustre's token bucket filter (TBF) slows a job until its files are elsewhere.

The leader decides (``running``, ``cases``, ``limits``), and an agent on each OSS sets rules (``agent``, ``rules``).
This folder can be deleted, with its lines in the registries.
"""
