"""Pictures of heads and domains, made and drawn as scikit-learn's displays are.

Every display is made by ``from_estimator`` or ``from_predictions``, keeps what it shows, and draws
it by ``plot``. They need ``pip install 'skdare[report]'``.
"""

from skdare.displays._adaptation_curve import AdaptationCurveDisplay
from skdare.displays._domain_calibration import DomainCalibrationDisplay
from skdare.displays._domain_pair import DomainPairDisplay
from skdare.displays._domain_score import DomainScoreDisplay
from skdare.displays._shrinkage_path import ShrinkagePathDisplay

__all__ = [
    "AdaptationCurveDisplay",
    "DomainCalibrationDisplay",
    "DomainPairDisplay",
    "DomainScoreDisplay",
    "ShrinkagePathDisplay",
]
