"""What every backend shares: binding models, the order of calls, running one call, collecting outputs."""
