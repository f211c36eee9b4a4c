"""Just-in-time adaptation: a head for a new domain from its unlabelled rows alone."""

from skdare.adapting.adapter import Adapter
from skdare.adapting.fleet import Fleet
from skdare.adapting.label_shift import LabelShiftWarning

__all__ = ["Adapter", "Fleet", "LabelShiftWarning"]
