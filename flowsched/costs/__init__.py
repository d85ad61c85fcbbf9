"""What calls, fragments and bytes cost on a backend of this machine, kept in a file that plans can read."""

from flowsched.costs.data import BackendCosts
from flowsched.costs.files import CostsFileError, costs_file, load_costs, save_costs

__all__ = ["BackendCosts", "CostsFileError", "costs_file", "load_costs", "save_costs"]
