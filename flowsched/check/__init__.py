"""The checker: whether a plan keeps its promises, found from the graph and the table alone.

It shares no code with the planner: rows per node, the order of the nodes and the makers of rows are derived
anew, so that a fault of the planner is not repeated here. Each problem's code names the promise it breaks:

=================  =====================================================================================
code               what holds where it is not reported
=================  =====================================================================================
``table``          columns have their types and lengths; calls stand node by node; indices exist
``exactly-once``   the calls of a node read each of its rows once
``saturation``     no call is empty; no replica is idle while there are rows for all, and where rows are
                   fewer than replicas each goes to a replica of its own
``balance``        loads of a node's replicas differ by at most one unit (row, or group that stays whole)
``cap``            no call reads more rows than the node's batch size
``fewest-calls``   each replica's load is cut into as few calls as the batch size allows
``even-calls``     the calls of a replica for one node differ by at most one unit
``group``          no group, and no rows that collapse into one, are cut apart
``alignment``      for every input, a call reads exactly its own rows, in order, without gap or overlap
``fragments``      each fragment is made by the call or source that it names, in one piece
``order``          the calls of a node stand in the order of their rows, so that outputs do
``waves``          the k-th calls of all replicas read earlier rows than the calls after them
``determinism``    what the promises leave open is fixed: replicas in turn, larger loads and calls first,
                   and the one sequence: by samples needed, then producers first
``queue``          the positions in each replica's queue are 0, 1, 2, ... without gap
``no-deadlock``    one sequence of all calls agrees with every queue, fragment and ``after``
=================  =====================================================================================
"""

from flowsched.check.check import check_plan, find_violations

__all__ = ["check_plan", "find_violations"]
