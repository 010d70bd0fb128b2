"""What tierd logs, as a list of sentences that grows until the test ends."""

from contextlib import ExitStack

from tierd.logs import heard

LISTENING = ExitStack()
"""The lists of this test; closed after it."""


def logged() -> list[str]:
    """The sentences of all packages of tierd, from now on."""
    sentences: list[str] = []
    LISTENING.enter_context(heard(sentences.append))
    return sentences
