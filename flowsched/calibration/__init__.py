"""Measuring what calls, fragments and bytes cost on a backend of this machine."""

from flowsched.calibration.measure import Timing, calibrate

__all__ = ["Timing", "calibrate"]
