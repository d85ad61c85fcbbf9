"""One step as every backend runs it: gather a call's inputs, call the worker, check what it returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from flowsched.batch import (
    Batch,
    BatchError,
    Structure,
    concat,
    count_rows,
    differences,
    protect,
    share,
    spread,
    structure,
    trailing_conflicts,
    with_lengths,
)
from flowsched.errors import OutputError, RunError, WorkerError, say_exception
from flowsched.plan import Plan
from flowsched.runtime.binding import Binding, NodeBinding
from flowsched.runtime.context import Context
from flowsched.runtime.outputs import Outputs
from flowsched.runtime.program import Links, Program, Read
from flowsched.runtime.usual import Usual
from flowsched.seeds import draw_entropy


class Seen(NamedTuple):
    """What one process has seen of the output of a node in a step.

    Attributes:
        structure: the structure of the first output.
        call: number of the call that made it.
        uneven: whether later ones had rows of other shapes.
    """

    structure: Structure
    call: int
    uneven: bool


@dataclass(frozen=True, eq=False)
class Step:
    """One execution of a plan.

    Attributes:
        program: the plan made ready to run.
        binding: the models.
        inputs: one batch for each source, in the order of ``graph.sources``.
        number: number of the step in its session, from 0.
        seed: the session's seed.
        window: the most calls of each node, in the order of ``graph.nodes``, that may have started while the
            output of the first of them is still needed.
    """

    program: Program
    binding: Binding
    inputs: Sequence[Batch]
    number: int
    seed: int
    window: Sequence[int]
    _seen: dict[str, Seen] = field(default_factory=dict, init=False)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.program.plan

    def gather(self, links: Links, outputs: Mapping[int, Batch] | Sequence[Batch]) -> list[Batch]:
        """Return one batch for each input of a call.

        Args:
            links: what the call has to do with others.
            outputs: by number, the output of every call that it reads from; the input of source ``s`` is
                number ``-1 - s``.

        Raises:
            OutputError: fragments of one input do not fit together.
        """
        try:
            if links.slices is not None:
                return [share(outputs[producer], start, stop) for producer, start, stop in links.slices]
            parts = [
                [share(outputs[producer], start, stop) for producer, start, stop in read.fragments]
                for read in links.reads
            ]
        except Exception as error:  # out of memory, or what a column of the user's own type raises
            raise self._uncut(links, error) from error
        return self.join(links, parts)

    def join(self, links: Links, parts: Sequence[Sequence[Batch]]) -> list[Batch]:
        """Return one batch for each input of a call, where its fragments have been cut already.

        As with :meth:`gather`, numpy arrays of one fragment are read-only.

        Args:
            links: what the call has to do with others.
            parts: for each input, the rows of its fragments (``links.reads[i].fragments``), in their order.

        Raises:
            OutputError: fragments of one input do not fit together.
        """
        if links.slices is not None:
            return [protect(own[0]) for own in parts]
        try:
            return [self._join(links, at, own) for at, own in enumerate(parts)]
        except OutputError:
            raise
        except Exception as error:
            raise self._uncut(links, error) from error

    def run(
        self,
        links: Links,
        worker: Callable[..., Any],
        batches: Sequence[Batch],
        device: str | None,
        cancelled: Callable[[], bool],
    ) -> Batch:
        """Call ``worker`` on the batches of a call and return what it returned, once that is checked.

        Raises:
            WorkerError: the worker raised; its exception is the cause.
            OutputError: it returned other rows or other columns than it must.
        """
        name = self.program.names[links.node]
        bound = self.binding.nodes[name]
        try:
            if bound.wants_context:
                result = worker(*batches, context=self._context(links.call, device, cancelled))
            else:
                result = worker(*batches)
        except BaseException as error:  # also a worker's SystemExit is told with its place
            # Without this frame, which must not hold the error either: its batches would never be let go.
            with suppress(Exception):
                error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
            raise WorkerError(
                **self.place(links.call), cause=error, mend=self._mend(links, batches, error)
            ) from error
        usual = self.program.usual.get(links.node)
        if usual is not None and usual.is_like(result, links.made):
            seen = self._seen.get(name) or self._note(name, usual.structure, links.call)
            if seen.structure is usual.structure:
                return result
        return self._checked(links, name, bound, result)

    def collect(self, outputs: Mapping[int, Batch] | Sequence[Batch]) -> Outputs:
        """Return the batches of the graph's outputs.

        Args:
            outputs: by number, the output of every call of an output node.

        Raises:
            OutputError: the calls of an output made columns that do not fit together.
        """
        pieces = {}
        paddings = {}
        for name in self.plan.graph.outputs:
            numbers = self.program.numbers[self.plan.graph.index(name)]
            paddings[name] = self.binding.nodes[name].padding
            pieces[name] = [outputs[call] for call in numbers]
            if name not in self._seen or not self._seen[name].uneven:
                continue
            conflict = trailing_conflicts([structure(piece) for piece in pieces[name]], paddings[name])
            if conflict is not None:
                calls = " and ".join(self._say(numbers[at]) for at in conflict.positions)
                problem = f"{conflict.problem} ({calls}), which cannot become one output"
                raise OutputError(problem, conflict.mend, **self.place(numbers[conflict.positions[1]]))
        return Outputs(pieces, paddings, self.program.names)

    def seen(self) -> Mapping[str, Seen]:
        """Return what is known here of each node's output, for :meth:`meet` in another process."""
        return self._seen

    def meet(self, seen: Mapping[str, Seen]) -> None:
        """Take note of what another process has seen of each node's output in this step.

        Raises:
            OutputError: calls of one node made other columns there than here.
        """
        for name, there in seen.items():
            here = self._seen.setdefault(name, there)
            if here is there:
                continue
            (found, call, uneven), (first, first_call, _) = there, here
            if uneven or found != first:
                self._note_uneven(name)
            if call < first_call:
                self._refuse_other_columns(found, call, first, first_call)
            else:
                self._refuse_other_columns(first, first_call, found, call)

    def node_name(self, call: int) -> str:
        """Return the name of the call's node."""
        return self.plan.graph.nodes[self.program.links[call].node].name

    def coordinates(self, call: int) -> tuple[str, int, int, int]:
        """Return the call's node, replica, position and rows read."""
        table = self.plan.table
        rows = int(table.stop[call] - table.start[call])
        return self.node_name(call), int(table.replica[call]), int(table.position[call]), rows

    def place(self, call: int) -> dict[str, Any]:
        """Return where ``call`` is, as :class:`RunError` takes it."""
        table = self.plan.table
        node = self.plan.graph.nodes[table.node[call]].name
        return {
            "node": node,
            "replica": int(table.replica[call]),
            "call": self._say(call),
            "samples": self.plan.samples_of(call),
        }

    def _join(self, links: Links, at: int, parts: Sequence[Batch]) -> Batch:
        read = links.reads[at]
        name = self.plan.graph.nodes[links.node].inputs[at]
        bound = self.binding.nodes.get(name)
        try:
            return spread(concat(parts, bound.padding if bound else None), read.start, read.stop, read.times)
        except BatchError as error:
            raise self._unreadable(links.call, read, error) from error

    def _uncut(self, links: Links, error: BaseException) -> RunError:
        problem = f"its inputs cannot be cut and joined: {say_exception(error)}"
        return OutputError(problem, "The cause stands above", **self.place(links.call))

    def _unreadable(self, call: int, read: Read, error: BatchError) -> RunError:
        shown, left = read.fragments[:4], len(read.fragments) - 4
        producers = ", ".join(self._say(producer) for producer, _, _ in shown)
        producers += f" and {left} more" if left > 0 else ""
        problem = f"it cannot read the fragments of {producers} as one batch: {error.problem}"
        return OutputError(problem, error.mend, **self.place(call))

    def _context(self, call: int, device: str | None, cancelled: Callable[[], bool]) -> Context:
        plan, table = self.plan, self.plan.table
        node = plan.graph.nodes[table.node[call]]
        start, stop = int(table.start[call]), int(table.stop[call])
        rows = plan.rows[node.name]
        sample_ids = np.arange(start, stop) // rows.siblings * rows.merged
        entropy = draw_entropy(self.seed, self.number, node.name)
        replica, replicas = int(table.replica[call]), plan.graph.owner(node.name).replicas
        return Context(
            node.name,
            replica,
            replicas,
            device,
            self.number,
            start,
            stop,
            *plan.made_rows(call),
            sample_ids,
            cancelled,
            entropy,
        )

    def _mend(self, links: Links, batches: Sequence[Batch], error: BaseException) -> str:
        """Return what may be behind an exception that a worker raised, as far as flowsched knows."""
        inputs = self.plan.graph.nodes[links.node].inputs
        missing = [name for name, batch in zip(inputs, batches, strict=True) if batch is None]
        if missing:
            return f"Its input {missing[0]!r} was None: does the worker of {missing[0]!r} forget to return?"
        if isinstance(error, ValueError) and "read-only" in str(error):
            return "Batches are shared with other nodes: copy an array before writing into it"
        return ""

    def _checked(self, links: Links, name: str, bound: NodeBinding, result: Batch) -> Batch:
        """Return what a worker returned, with the columns that its model declares beside, or refuse it."""
        try:
            if bound.has_lengths:
                result = with_lengths(result, bound.padding)
            rows = count_rows(result)
            found = structure(result)
        except BatchError as error:
            raise OutputError(
                f"its output is no batch: {error.problem}", error.mend, **self.place(links.call)
            ) from error
        except Exception as error:  # endless nesting, or what a column of the user's own type raises
            problem = f"its output cannot be looked into: {say_exception(error)}"
            raise OutputError(problem, "The cause stands above", **self.place(links.call)) from error
        expected = links.made
        if rows is not None and rows != expected:
            raise self._wrong_rows(links.call, rows, expected)
        first, first_call, _ = self._note(name, found, links.call)
        if found == first:
            self.program.usual[links.node] = Usual.of(result, first)
            return result
        self._note_uneven(name)
        self._refuse_other_columns(first, first_call, found, links.call)
        return result

    def _note(self, name: str, found: Structure, call: int) -> Seen:
        """Note the structure of an output, unless one of the node is noted, and return what is."""
        return self._seen.setdefault(name, Seen(found, call, False))

    def _note_uneven(self, name: str) -> None:
        self._seen[name] = self._seen[name]._replace(uneven=True)

    def _refuse_other_columns(self, first: Structure, first_call: int, found: Structure, call: int) -> None:
        if found.columns != first.columns:
            problem = f"its output differs from that of {self._say(first_call)}: "
            problem += "; ".join(differences(first, found))
            mend = "Return the same columns, of the same kinds and dtypes, from every call of a node"
            raise OutputError(problem, mend, **self.place(call))

    def _wrong_rows(self, call: int, rows: int, expected: int) -> RunError:
        node = self.plan.graph.nodes[self.plan.table.node[call]]
        read = int(self.plan.table.stop[call] - self.plan.table.start[call])
        because = f"it read {read} rows"
        because += f" and collapses {node.collapse} into one" if node.collapse > 1 else ""
        because += f" and expands each to {node.expand}" if node.expand > 1 else ""
        if node.expand > 1:
            mend = f"Return {expected} rows: the {node.expand} of each row next to each other"
        elif node.collapse > 1:
            mend = f"Return {expected} rows, one for every {node.collapse} read"
        else:
            mend = (
                f"Return {expected} rows, one for each row read, or declare expand= or collapse= on the node"
            )
        return OutputError(f"it returned {rows} rows, not {expected}: {because}", mend, **self.place(call))

    def _say(self, call: int) -> str:
        """Return ``node.replica.position[start:stop]``, the part of the call notation before the arrow."""
        table = self.plan.table
        if call < 0:
            return self.plan.graph.sources[-1 - call]
        start, stop = self.plan.made_rows(call)
        node = self.plan.graph.nodes[table.node[call]].name
        return f"{node}.{table.replica[call]}.{table.position[call]}[{start}:{stop}]"
