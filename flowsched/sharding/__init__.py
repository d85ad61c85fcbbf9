"""Which sample goes to which process: one rule, for evaluation, for training, and for data that is there already.

It knows numbers only, and neither torch nor any launcher: :mod:`flowsched.data` makes loaders of it.
"""

from flowsched.sharding.deal import Deal
from flowsched.sharding.declaration import Mode, Sharding, ShardingError, Tail

__all__ = ["Deal", "Mode", "Sharding", "ShardingError", "Tail"]
