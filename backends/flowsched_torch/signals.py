"""Messages without rows."""

from __future__ import annotations

import torch

from flowsched_torch.mesh import Mesh, Work, finish


class Signal:
    """A message without rows: that calls have ended. One end of it; the arguments are those of the others."""

    def __init__(self, mesh: Mesh, peer: int, tag: int) -> None:
        self._mesh, self._peer, self._tag = mesh, peer, tag
        self._nothing = [torch.empty(0, dtype=torch.uint8)]
        self._work: Work | None = None

    def send(self) -> None:
        """Begin to send it."""
        self.wait()
        self._work = self._mesh.send(self._nothing, self._peer, self._tag)

    def post(self) -> None:
        """Post its receive, unless it is posted."""
        if self._work is None:
            self._work = self._mesh.receive(self._nothing, self._peer, self._tag)

    def wait(self) -> None:
        """Wait until it is sent, or here."""
        if self._work is not None:
            finish(self._work)
            self._work = None

    def settle(self) -> None:
        """Nobody needs to wait for so little: the next one does."""
