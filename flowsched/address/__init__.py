"""Where a graph, its models and its data are found: files, modules and names in them."""

from flowsched.address.data import load_data
from flowsched.address.job import Job, load_job
from flowsched.address.modules import load_object

__all__ = ["Job", "load_data", "load_job", "load_object"]
