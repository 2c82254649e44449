"""What rules look for, in which units, and from where on unless somebody says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from ondatra_web.models import AlertKind


@dataclass(frozen=True)
class Sort:
    """One kind of rule. The first unit, with these thresholds, is what every workspace has without set-up."""

    label: str
    asks: str  # what the thresholds mean, for people
    units: dict[str, str]  # name -> what stands behind the number
    warning: float | None
    critical: float | None
    least: float = 0.0  # no threshold is below that
    most: float = 1_000_000_000.0

    @property
    def unit(self) -> str:
        return next(iter(self.units))


SORTS = {
    AlertKind.FAILURE: Sort("Failure", "Runs that failed in a row", {"runs": "runs"}, 1, 3, least=1),
    AlertKind.REJECTED: Sort(
        "Rejected",
        "Records of a run that the destination did not take",
        {"percent": "% of the records", "records": "records"},
        5,
        50,
        least=0.001,
    ),
    AlertKind.INVALID: Sort(
        "Invalid rows",
        "Rows of the model without a key, or with one that is there twice",
        {"percent": "% of the rows", "records": "rows"},
        5,
        50,
        least=0.001,
    ),
    AlertKind.DEVIATION: Sort(
        "Row count",
        "How far a count is off its usual, up or down; no rows at all is 100 %",
        {"percent": "%"},
        50,
        90,
        1,
    ),
    AlertKind.DURATION: Sort(
        "Duration", "How long a run takes", {"times": "times its usual", "minutes": "minutes"}, 3, None, least=0.1
    ),
    AlertKind.LATE: Sort(
        "Late", "Since a scheduled time whose run has not ended", {"minutes": "minutes"}, 60, 360, least=1
    ),
    AlertKind.DUE: Sort(
        "Growing due",
        "Rows that wait to be sent again",
        {"runs": "runs in a row with more of them", "records": "rows"},
        3,
        10,
        least=1,
    ),
    AlertKind.HELD: Sort("Held", "Since a run waits for a person", {"hours": "hours"}, 0, 24),
}
#: What a deviation may look at.
MEASURES = {"source": "rows of the model", "planned": "records to send", "deleted": "deletes"}
