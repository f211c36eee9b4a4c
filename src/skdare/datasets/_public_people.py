"""Public sets about people: patients, pupils, communities, speakers.

`fetch_gas_drift` describes in full the parameters that all fetchers have in common.
"""

from __future__ import annotations

from os import PathLike

import numpy as np

from skdare._validation import check_choice
from skdare.datasets._archive import archived_files
from skdare.datasets._codes import coded, numbered
from skdare.datasets._domain_data import DomainData
from skdare.datasets._public_sources import fetched, origin
from skdare.datasets._text_columns import TextColumns, words

_HEART = words("age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal")
_SUPPORT_NUMBERS = words(
    "age num.co scoma hday diabetes dementia meanbp wblc hrt resp temp pafi alb bili crea sod "
    "ph glucose bun urine adlsc edu"
)
_STUDENT_NUMBERS = words(
    "age Medu Fedu traveltime studytime failures famrel freetime goout Dalc Walc health absences"
)
# The first choice of each is left out as a feature: it is what all others being 0 means.
_STUDENT_CHOICES = {
    "sex": ("F", "M"),
    "address": ("R", "U"),
    "famsize": ("GT3", "LE3"),
    "Pstatus": ("A", "T"),
    "Mjob": ("at_home", "health", "other", "services", "teacher"),
    "Fjob": ("at_home", "health", "other", "services", "teacher"),
    "reason": ("course", "home", "other", "reputation"),
    "guardian": ("father", "mother", "other"),
    "schoolsup": ("no", "yes"),
    "famsup": ("no", "yes"),
    "paid": ("no", "yes"),
    "activities": ("no", "yes"),
    "nursery": ("no", "yes"),
    "higher": ("no", "yes"),
    "internet": ("no", "yes"),
    "romantic": ("no", "yes"),
}
# By these the publisher finds pupils of one file in the other.
_STUDENT_SAME = words(
    "school sex age address famsize Pstatus Medu Fedu Mjob Fjob reason nursery internet"
)
_SUBJECTS = ("mat", "por")
_CRIME_BEFORE = ("state", "county", "community", "communityname", "fold")
_CRIME_TARGET = "ViolentCrimesPerPop"
# All columns between those and the target.
_CRIME = words("""
population householdsize racepctblack racePctWhite racePctAsian racePctHisp agePct12t21
agePct12t29 agePct16t24 agePct65up numbUrban pctUrban medIncome pctWWage pctWFarmSelf pctWInvInc
pctWSocSec pctWPubAsst pctWRetire medFamInc perCapInc whitePerCap blackPerCap indianPerCap
AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov PctLess9thGrade PctNotHSGrad
PctBSorMore PctUnemployed PctEmploy PctEmplManu PctEmplProfServ PctOccupManu PctOccupMgmtProf
MalePctDivorce MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam PctFam2Par PctKids2Par
PctYoungKids2Par PctTeen2Par PctWorkMomYoungKids PctWorkMom NumIlleg PctIlleg NumImmig
PctImmigRecent PctImmigRec5 PctImmigRec8 PctImmigRec10 PctRecentImmig PctRecImmig5 PctRecImmig8
PctRecImmig10 PctSpeakEnglOnly PctNotSpeakEnglWell PctLargHouseFam PctLargHouseOccup
PersPerOccupHous PersPerOwnOccHous PersPerRentOccHous PctPersOwnOccup PctPersDenseHous
PctHousLess3BR MedNumBR HousVacant PctHousOccup PctHousOwnOcc PctVacantBoarded PctVacMore6Mos
MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart OwnOccMedVal OwnOccHiQuart RentLowQ
RentMedian RentHighQ MedRent MedRentPctHousInc MedOwnCostPctInc MedOwnCostPctIncNoMtg
NumInShelters NumStreet PctForeignBorn PctBornSameState PctSameHouse85 PctSameCity85
PctSameState85 LemasSwornFT LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq
LemasTotReqPerPop PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite PctPolicBlack
PctPolicHisp PctPolicAsian PctPolicMinor OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked
LandArea PopDens PctUsePubTrans PolicCars PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy
LemasPctOfficDrugUn PolicBudgPerPop
""")
# States by their federal numbers.
_STATES = numbered(
    """
AL AK -- AZ AR CA -- CO CT DE DC FL GA -- HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH
NJ NM NY NC ND OH OK OR PA -- RI SC SD TN TX UT VT VA -- WA WV WI WY
""",
    first=1,
)
_VOWELS = numbered("hid hId hEd hAd hYd had hOd hod hUd hud hed")
_SPEAKERS = numbered("Andrew Bill David Mark Jo Kate Penny Rose Mike Nick Rich Tim Sarah Sue Wendy")
_VOWEL_FEATURES = [f"feature_{i}" for i in range(10)]


def fetch_heart_disease(
    *,
    target: str = "disease",
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> DomainData:
    """Heart disease at four hospitals: 920 patients, 13 features, many of them missing.

    A domain is a hospital: cleveland, hungarian, switzerland, va. ``ca``, ``thal`` and ``slope``
    are mostly NaN outside Cleveland. A cholesterol (``chol``) of 0 is not a value but a sign that
    it was not measured, and left as published.

    Parameters
    ----------
    target : {"disease", "grade"}
        Whether a vessel is narrowed, 0 or 1, or the published grade, 0 to 4.
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/static/public/45/heart+disease.zip
    Its SHA-256 is known from public repositories that downloaded it.

    Licence: CC BY 4.0.

    Please cite R. Detrano, A. Janosi, W. Steinbrunn, M. Pfisterer, J. Schmid, S. Sandhu, K. Guppy,
    S. Lee and V. Froelicher (1989), "International application of a new probability algorithm for
    the diagnosis of coronary artery disease", American Journal of Cardiology 64, 304-310; data:
    A. Janosi, W. Steinbrunn, M. Pfisterer and R. Detrano, https://doi.org/10.24432/C52P4X.

    Examples
    --------
    >>> from skdare.datasets import fetch_heart_disease
    >>> patients = fetch_heart_disease()  # doctest: +SKIP
    """
    check_choice("target", target, ("disease", "grade"))
    with fetched("heart_disease", data_home, download_if_missing) as path:
        files = archived_files(path, "processed.*.data")
        tables = {
            name.split(".")[1]: TextColumns.read(name, files[name], (*_HEART, "grade"))
            for name in sorted(files)
        }
        published = [table.numbers(["grade"])[:, 0] for table in tables.values()]
        grades = np.concatenate(published).astype(np.int64)
        return DomainData(
            np.concatenate([table.numbers(_HEART) for table in tables.values()]),
            grades if target == "grade" else (grades > 0).astype(np.int64),
            np.repeat(list(tables), [len(table) for table in tables.values()]),
            name="heart disease",
            feature_names=list(_HEART),
            made=origin("heart_disease"),
            target_name=target,
            domain_name="hospital",
        )


def fetch_support2(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Seriously ill patients: 9,105 of them, and whether they died within 180 days.

    25 features as measured, NaN where they were not. A domain is a group by disease, eight in all.
    ``ca`` (cancer: no, yes, metastatic) is two features of 0 and 1, and the sex is ``male``.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/static/public/880/data.csv
    Its SHA-256 is known from a public repository that downloaded it.

    Licence: CC BY 4.0 on the beta page of the UCI repository; its current page refers to the
    original source.

    Please cite W. A. Knaus, F. E. Harrell, J. Lynn and others (1995), "The SUPPORT prognostic
    model: objective estimates of survival for seriously ill hospitalized adults", Annals of
    Internal Medicine 122, 191-203; data: F. Harrell, https://doi.org/10.3886/ICPSR02957.v2.

    Examples
    --------
    >>> from skdare.datasets import fetch_support2
    >>> patients = fetch_support2()  # doctest: +SKIP
    """
    with fetched("support2", data_home, download_if_missing) as path:
        table = TextColumns.read(path.name, path.read_bytes())
        cancer = table.text("ca")
        flags = [table.text("sex") == "male", cancer == "yes", cancer == "metastatic"]
        died, days = table.numbers(["death", "d.time"]).T
        return DomainData(
            np.column_stack([table.numbers(_SUPPORT_NUMBERS), *flags]),
            ((died == 1) & (days <= 180)).astype(np.int64),
            table.text("dzgroup"),
            name="SUPPORT2",
            feature_names=[*_SUPPORT_NUMBERS, "male", "ca_yes", "ca_metastatic"],
            made=origin("support2"),
            target_name="death within 180 days",
            domain_name="dzgroup",
        )


def fetch_student_performance(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Pupils of two schools in two subjects: 1,044 final grades, 38 features.

    A domain is a school and a subject, as ``GP_mat``. Choices are features of 0 and 1 for all but
    the first of each. The grades of the first two terms are left out. ``groups`` has one number
    for rows that agree in the thirteen columns by which the publisher finds a pupil in both files.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/static/public/320/student+performance.zip
    Its SHA-256 is not known: that of your first download is recorded.

    Licence: CC BY 4.0.

    Please cite P. Cortez and A. Silva (2008), "Using data mining to predict secondary school
    student performance", Proceedings of the 5th Future Business Technology Conference, 5-12; data:
    https://doi.org/10.24432/C5TG7T.

    Examples
    --------
    >>> from skdare.datasets import fetch_student_performance
    >>> pupils = fetch_student_performance()  # doctest: +SKIP
    """
    with fetched("student_performance", data_home, download_if_missing) as path:
        names = [f"student-{subject}.csv" for subject in _SUBJECTS]
        files = archived_files(path, *names)
        X, y, domains = [], [], []
        pupils: list[tuple[str, ...]] = []
        for subject, name in zip(_SUBJECTS, names, strict=True):
            table = TextColumns.read(name, files[name], delimiter=";")
            choices = [
                table.text(column) == choice
                for column, known in _STUDENT_CHOICES.items()
                for choice in known[1:]
            ]
            X.append(np.column_stack([table.numbers(_STUDENT_NUMBERS), *choices]))
            y.append(table.numbers(["G3"])[:, 0])
            domains += [f"{school}_{subject}" for school in table.text("school")]
            pupils += zip(*(table.text(column).tolist() for column in _STUDENT_SAME), strict=True)
        number = {pupil: i for i, pupil in enumerate(dict.fromkeys(pupils))}
        return DomainData(
            np.concatenate(X),
            np.concatenate(y),
            np.array(domains),
            name="student performance",
            feature_names=[
                *_STUDENT_NUMBERS,
                *(f"{column}_{c}" for column, known in _STUDENT_CHOICES.items() for c in known[1:]),
            ],
            made=origin("student_performance"),
            target_name="G3",
            domain_name="school and subject",
            groups=np.array([number[pupil] for pupil in pupils]),
        )


def fetch_communities_crime(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Communities of 46 states of the USA: 1,994 of them, to predict violent crime per head.

    122 features in [0, 1], as published; those about the police are mostly NaN. A domain is a
    state, by its two letters.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/static/public/183/communities+and+crime.zip
    Its SHA-256 is not known: that of your first download is recorded.

    Licence: CC BY 4.0.

    Please cite M. A. Redmond and A. Baveja (2002), "A data-driven software tool for enabling
    cooperative information sharing among police departments", European Journal of Operational
    Research 141, 660-678; data: M. Redmond, https://doi.org/10.24432/C53W3X.

    Examples
    --------
    >>> from skdare.datasets import fetch_communities_crime
    >>> communities = fetch_communities_crime()  # doctest: +SKIP
    """
    with fetched("communities_crime", data_home, download_if_missing) as path:
        ((file, content),) = archived_files(path, "communities.data").items()
        table = TextColumns.read(file, content, (*_CRIME_BEFORE, *_CRIME, _CRIME_TARGET))
        return DomainData(
            table.numbers(_CRIME),
            table.numbers([_CRIME_TARGET])[:, 0],
            coded(table.text("state"), _STATES, file),
            name="communities and crime",
            feature_names=list(_CRIME),
            made=origin("communities_crime"),
            target_name=_CRIME_TARGET,
            domain_name="state",
        )


def fetch_vowels(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Eleven vowels of fifteen speakers: 990 utterances, ten features.

    A domain is a speaker, by name; a vowel is the word that it was said in.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/ml/machine-learning-databases/undocumented/connectionist-bench/vowel/vowel-context.data
    Its SHA-256 is not known: that of your first download is recorded.

    Licence: none was found stated for this file; ask the UCI repository.

    Please cite D. Deterding, M. Niranjan and T. Robinson, "Connectionist Bench (Vowel Recognition
    - Deterding Data)", UCI Machine Learning Repository, https://doi.org/10.24432/C58P4S, and for
    this form of it P. Turney (1993), "Robust classification with context-sensitive features",
    IEA/AIE-93, 268-276.

    Examples
    --------
    >>> from skdare.datasets import fetch_vowels
    >>> utterances = fetch_vowels()  # doctest: +SKIP
    """
    with fetched("vowels", data_home, download_if_missing) as path:
        names = ("part", "speaker", "sex", *_VOWEL_FEATURES, "vowel")
        table = TextColumns.read(path.name, path.read_bytes(), names, delimiter=None)
        return DomainData(
            table.numbers(_VOWEL_FEATURES),
            coded(table.text("vowel"), _VOWELS, path.name),
            coded(table.text("speaker"), _SPEAKERS, path.name),
            name="vowels",
            feature_names=list(_VOWEL_FEATURES),
            made=origin("vowels"),
            target_name="vowel",
            domain_name="speaker",
        )
