"""What a step returns: one batch for each output of the graph, in the order of the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flowsched.batch import Batch, Padding, concat, count_rows
from flowsched.errors import FlowschedError, say_known


class UnknownOutputError(FlowschedError, KeyError):
    """A name that is no output of the graph."""

    code = "unknown-output"

    def __init__(self, name: object, known: Sequence[str], nodes: Sequence[str] = ()) -> None:
        self.name = name
        self.known = tuple(known)
        self.nodes = tuple(nodes)
        if name in nodes:
            mend = f"Other nodes read it; to have it back, too, name it in Graph(outputs={[*known, name]})"
        else:
            mend = say_known(str(name), known, "outputs")
        self.sentence = f"{name!r} is no output. {mend}"
        super().__init__(self.sentence)

    def __reduce__(self) -> tuple[type[UnknownOutputError], tuple[object, tuple[str, ...], tuple[str, ...]]]:
        return type(self), (self.name, self.known, self.nodes)

    def __str__(self) -> str:
        return self.sentence


class OutputsElsewhereError(FlowschedError):
    """Outputs read in a process that was not sent them."""

    code = "outputs-elsewhere"


class Outputs(Mapping[str, Batch]):
    """The outputs of a step, by name: a read-only mapping.

    The batches of an output's calls are joined when the output is first asked for, so that one that is only
    streamed on (by :meth:`pieces`) is never copied. A node whose workers return None has the output None; a
    step of no samples has the output ``[]``.
    """

    def __init__(
        self,
        pieces: Mapping[str, Sequence[Batch]],
        paddings: Mapping[str, Mapping[str, Padding]],
        nodes: Sequence[str] = (),
    ) -> None:
        self._pieces = {name: tuple(batches) for name, batches in pieces.items()}
        self._paddings = dict(paddings)
        self._nodes = tuple(nodes)
        self._elsewhere = ""

    @classmethod
    def elsewhere(cls, names: Sequence[str], where: str) -> Outputs:
        """Return the outputs of a step whose rows went to another process.

        Args:
            names: names of the outputs.
            where: where they are and how to have them here, as a sentence; what reading any of them raises.
        """
        outputs = cls(dict.fromkeys(names, ()), {})
        outputs._elsewhere = where
        return outputs

    @property
    def are_here(self) -> bool:
        """Whether this process was sent the outputs; if not, reading them raises OutputsElsewhereError."""
        return not self._elsewhere

    def pieces(self, name: str) -> tuple[Batch, ...]:
        """Return the batches of the output's calls, in the order of the rows.

        Raises:
            UnknownOutputError: there is no such output.
            OutputsElsewhereError: this process was not sent the outputs.
        """
        if name not in self._pieces:
            raise UnknownOutputError(name, tuple(self._pieces), self._nodes)
        if self._elsewhere:
            raise OutputsElsewhereError(self._elsewhere)
        return self._pieces[name]

    def __getitem__(self, name: str) -> Batch:
        pieces = self.pieces(name)
        if not pieces:
            return []
        if len(pieces) > 1:
            pieces = self._pieces[name] = (concat(pieces, self._paddings[name]),)
        return pieces[0]

    def __contains__(self, name: object) -> bool:
        return name in self._pieces  # the mapping's own way would join the batches

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)

    def __repr__(self) -> str:
        if self._elsewhere:
            return f"<Outputs {', '.join(self._pieces)}: elsewhere>"
        return f"<Outputs {', '.join(f'{name}: {_say(pieces)}' for name, pieces in self._pieces.items())}>"


def _say(pieces: Sequence[Batch]) -> str:
    counts = [count_rows(piece) for piece in pieces]
    if counts and all(count is None for count in counts):
        return "None"
    return f"{sum(count or 0 for count in counts)} rows"
