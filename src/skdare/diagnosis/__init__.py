"""Before a head is trusted on a new domain: what its unlabelled rows say, and a recommendation."""

from skdare.diagnosis._bound import Bound, bound
from skdare.diagnosis._calibration import calibrate
from skdare.diagnosis._diagnose import diagnose
from skdare.diagnosis._diagnosis import Diagnosis
from skdare.diagnosis._finding import MIN_ROWS as MIN_ROWS
from skdare.diagnosis._finding import Finding
from skdare.diagnosis._forecast import Forecast
from skdare.diagnosis._geometry import effective_rank, eigengap
from skdare.diagnosis._prediction_set import predict_set
from skdare.diagnosis._recommendation import Recommendation
from skdare.diagnosis._rehearsal import Rehearsal
from skdare.diagnosis._rehearsing import rehearse
from skdare.diagnosis._score_interval import ScoreInterval, ScoreRange, score_interval

__all__ = [
    "Bound",
    "Diagnosis",
    "Finding",
    "Forecast",
    "Recommendation",
    "Rehearsal",
    "ScoreInterval",
    "ScoreRange",
    "bound",
    "calibrate",
    "diagnose",
    "effective_rank",
    "eigengap",
    "predict_set",
    "rehearse",
    "score_interval",
]
