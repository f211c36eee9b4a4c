"""Before a head is trusted on a new domain: what its unlabelled rows say, and a recommendation."""

from skdare.diagnosis._diagnose import Diagnosing
from skdare.diagnosis._diagnosis import Diagnosis
from skdare.diagnosis._finding import Finding
from skdare.diagnosis._geometry import effective_rank, eigengap
from skdare.diagnosis._recommendation import ACTIONS, Recommendation
from skdare.diagnosis._rehearsal import Rehearsal, Rehearsed, Rehearsing
from skdare.diagnosis._task import SATURATED
from skdare.diagnosis._training import TrainingDomains

__all__ = [
    "ACTIONS",
    "SATURATED",
    "Diagnosing",
    "Diagnosis",
    "Finding",
    "Recommendation",
    "Rehearsal",
    "Rehearsed",
    "Rehearsing",
    "TrainingDomains",
    "effective_rank",
    "eigengap",
]
