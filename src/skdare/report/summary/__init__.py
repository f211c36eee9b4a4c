"""What the records of a run say: grids of scores, the heads' standing, and how sure we are."""

from skdare.report.summary.groups import Conditions, Failure, Group, Summary, summarise

__all__ = ["Conditions", "Failure", "Group", "Summary", "summarise"]
