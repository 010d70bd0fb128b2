"""A copy of a file on flash, as a mirror, instead of a move: its choice by policies, and its mover."""
