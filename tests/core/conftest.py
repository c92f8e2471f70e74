"""Settings of libraries that several tests of core ask for by ``usefixtures``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small products by one thread: on a busy machine several wait for each other longer than they work."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def quiet() -> Iterator[None]:
    """transformers remarks on the special tokens of a vocabulary of 61."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    yield
    logging.set_verbosity(before)
