"""Where a graph, its models and its data are found: files, modules and names in them."""

from flowsched.address.data import load_data
from flowsched.address.job import Job, load_job
from flowsched.address.modules import importable, load_object

__all__ = ["Job", "importable", "load_data", "load_job", "load_object"]
