"""Before a head is trusted on a new domain: what its unlabelled rows say, and a recommendation."""

from skdare.diagnosis._diagnose import MIN_ROWS as MIN_ROWS
from skdare.diagnosis._diagnose import diagnose as diagnose
from skdare.diagnosis._diagnosis import Diagnosis
from skdare.diagnosis._finding import LEVELS, Finding
from skdare.diagnosis._geometry import effective_rank, eigengap
from skdare.diagnosis._recommendation import ACTIONS, Recommendation
from skdare.diagnosis._rehearsal import Rehearsal, Rehearsed
from skdare.diagnosis._rehearsing import rehearse as rehearse

__all__ = [
    "ACTIONS",
    "LEVELS",
    "Diagnosis",
    "Finding",
    "Recommendation",
    "Rehearsal",
    "Rehearsed",
    "effective_rank",
    "eigengap",
]
