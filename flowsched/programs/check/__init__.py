"""The checker of programs: whether they run a plan to its end, found from its table and the programs alone.

It shares no code with the lowering. Each problem's code names what is wrong:

=====================  =================================================================================
code                   what it means
=====================  =================================================================================
``columns``            the programs' columns cannot be read: lengths, kinds, numbers out of range
``missing-call``       a call of the plan is run by no rank
``repeated-call``      a call is run more than once
``wrong-rank``         a call, send or receive stands on another rank than the placement or its message says
``wrong-queue``        the calls of a replica are run in another order than its queue
``unmatched-send``     a message is sent and never received
``unmatched-receive``  a message is received and never sent
``missing-message``    a message is neither sent nor received
``repeated-message``   a message is sent or received more than once
``early-send``         rows are sent before the call that makes them is run
``late-receive``       a call is run before a message that it reads is received
``wrong-order``        two ranks send and receive the messages between them in different orders
``missing-rows``       rows that a call reads are neither made before on its rank nor brought by a message
``surplus-rows``       a message brings rows that its reader does not read
``repeated-rows``      two messages bring the same rows to the same call
``unread-message``     a message that no call reads and that is no output
``missing-output``     rows of an output do not come home
``missing-end``        a call of a node that comes ``after`` another does not wait for the end of its calls
``cycle``              ranks wait for each other in a circle
=====================  =================================================================================
"""

from flowsched.programs.check.check import check_programs, find_violations

__all__ = ["check_programs", "find_violations"]
