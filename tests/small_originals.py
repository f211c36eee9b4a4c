"""Miniatures of the files that fetchers of public sets read, in the publishers' formats."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy.io import savemat

from skdare.datasets._public_sources import SOURCES

HEART = """\
63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0
67.0,1.0,4.0,160.0,286.0,0.0,2.0,108.0,1.0,1.5,2.0,3.0,3.0,2
"""
HUNGARY = "28,1,2,130,132,0,2,185,0,0,?,?,?,0\n29,1,2,140,?,0,0,170,0,0,?,?,?,1\n"
ACTIVITIES = "1 WALKING\n2 WALKING_UPSTAIRS\n5 STANDING\n"
ARFF = """\
@relation activity_recognition_labeled

@attribute "UNIQUE_ID" numeric
@attribute "user" {33 , 17, 6}
@attribute "X0" numeric
@attribute "XPEAK" numeric
@attribute class { Walking , Jogging }

@data
1,33,0.04,2075,Jogging
2,17,0.12,?,Walking
3,6,0.14,1525.5,Walking
"""
AIR = """\
"No","year","month","day","hour","PM2.5","PM10","SO2","NO2","CO","O3","TEMP","PRES","DEWP","RAIN",\
"wd","WSPM","station"
1,2013,3,1,0,4,4,4,7,300,77,-0.7,1023,-18.8,0,"NNW",4.4,"{0}"
2,2013,3,1,1,NA,8,4,7,300,77,-1.1,1023.2,-18.2,0,"N",4.7,"{0}"
3,2013,3,1,2,7,7,5,10,NA,73,-1.1,1023.5,-18.2,0,NA,5.6,"{0}"
"""
STUDENTS = """\
school;sex;age;address;famsize;Pstatus;Medu;Fedu;Mjob;Fjob;reason;guardian;traveltime;studytime;\
failures;schoolsup;famsup;paid;activities;nursery;higher;internet;romantic;famrel;freetime;goout;\
Dalc;Walc;health;absences;G1;G2;G3
"GP";"F";18;"U";"GT3";"A";4;4;"at_home";"teacher";"course";"mother";2;2;0;"yes";"no";"no";"no";\
"yes";"yes";"no";"no";4;3;4;1;1;3;6;"5";"6";6
"""
OTHER_STUDENT = """\
"MS";"M";17;"R";"LE3";"T";1;2;"other";"services";"home";"father";1;1;3;"no";"yes";"yes";"yes";\
"no";"no";"yes";"yes";5;5;5;5;5;5;0;"7";"8";0
"""
TURBINE = """\
AT,AP,AH,AFDP,GTEP,TIT,TAT,TEY,CDP,CO,NOX
4.5878,1018.7,83.675,3.5758,23.979,1086.2,549.83,134.67,11.898,0.32663,81.952
4.2932,1018.3,84.235,3.5709,23.951,1086.1,550.05,134.67,11.892,0.44784,82.377
"""
SUPPORT = """\
id,age,death,sex,hospdead,slos,d.time,dzgroup,dzclass,num.co,edu,income,scoma,charges,hday,\
diabetes,dementia,ca,meanbp,wblc,hrt,resp,temp,pafi,alb,bili,crea,sod,ph,glucose,bun,urine,adlsc
1,62.84998,0,male,0,5,2029,Lung Cancer,Cancer,0,11,$11-$25k,0,9715,1,0,0,metastatic,97,6,69,22,36,\
388,1.7998047,0.19998169,1.19995117,141,7.459961,,,,7
2,60.33899,1,female,1,4,4,Cirrhosis,COPD/CHF/Cirrhosis,2,12,$11-$25k,44,34496,3,0,0,no,43,17.0976562,\
112,34,34.59375,98,,,5.5,132,7.25,,,,1
3,52.1,1,female,0,9,659,CHF,COPD/CHF/Cirrhosis,2,,,0,1,4,0,0,yes,70,8.5,88,28,37.4,231.7,,,2,134,7.4,\
135,,,0
"""
INSTRUMENTS = ((1.0, "m5"), (2.0, "mp5"), (3.0, "mp6"))
VOWELS = """\
0  0 0 -3.639  0.418 -0.670  1.779 -0.168  1.627 -0.388  0.529 -0.874 -0.814  0
0  2 0 -2.704  1.285 -0.908  1.570 -0.840  1.044 -0.399  0.951  0.345 -0.695  10
1 14 1 -3.327  0.496 -0.694  1.365 -0.265  1.933 -0.363  0.510 -0.621 -0.488  1
"""


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of these files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def taped(files: Mapping[str, str]) -> bytes:
    """A compressed tar archive of these files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()


def gas_line(gas: int, concentration: float, first: float) -> str:
    """One measurement; feature i is the first plus i."""
    values = " ".join(f"{i + 1}:{first + i:.6f}" for i in range(128))
    return f"{gas};{concentration:.6f} {values} \n"


def _gas() -> bytes:
    batches = {
        "batch10": gas_line(6, 100, 3.0),
        "batch2": gas_line(2, 50, -1.5),
        "batch1": gas_line(1, 10, 15596.1621) + gas_line(4, 20, 7.0),
    }
    return zipped({f"Dataset/{name}.dat": text for name, text in batches.items()})


def _har() -> bytes:
    folder = "UCI HAR Dataset"
    inner = {
        f"{folder}/activity_labels.txt": ACTIVITIES,
        f"{folder}/features.txt": "1 tBodyAcc-mean()-X\n2 fBodyAcc()-1,8\n3 fBodyAcc()-1,8\n",
        f"{folder}/train/X_train.txt": "  2.8858451e-001 -2e-002 3\n  2.7841883e-001 1.0e+000 4\n",
        f"{folder}/train/y_train.txt": "5\n1\n",
        f"{folder}/train/subject_train.txt": "1\n30\n",
        f"{folder}/train/Inertial Signals/body_acc_x_train.txt": "1.8e-004\n",
        f"{folder}/test/X_test.txt": "  2.5717778e-001 -2.3285230e-002 5\n",
        f"{folder}/test/y_test.txt": "2\n",
        f"{folder}/test/subject_test.txt": "2\n",
        f"__MACOSX/{folder}/train/._X_train.txt": "not numbers",
    }
    return zipped({f"{folder}.zip": zipped(inner), f"{folder}.names": "about it"})


def _air() -> bytes:
    folder, ending = "PRSA_Data_20130301-20170228", "20130301-20170228.csv"
    inner = {f"{folder}/": ""} | {
        f"{folder}/PRSA_Data_{station}_{ending}": AIR.format(station)
        for station in ("Tiantan", "Aotizhongxin")
    }
    return zipped({"PRSA2017_Data_20130301-20170228.zip": zipped(inner), "test.csv": "1,2\n"})


def _crime() -> bytes:
    colorado = ["8", "?", "?", "Lakewoodcity", "1", *["0.19"] * 121, "?", "0.2"]
    wyoming = ["56", "21", "13900", "Cheyennecity", "7", *["0.5"] * 122, "0.67"]
    rows = [",".join(row) for row in (colorado, wyoming)]
    return zipped({"communities.data": "\n".join(rows), "communities.names": "Title: …"})


def _office() -> bytes:
    files = {}
    for name, rows in (("amazon", 3), ("Caltech10", 2), ("dslr", 1), ("webcam", 2)):
        content = io.BytesIO()
        labels = np.arange(1, rows + 1)[:, None]
        savemat(content, {"fts": np.full((rows, 800), float(rows)), "labels": labels})
        files[f"ToRelease_GFK/data/{name}_SURF_L10.mat"] = content.getvalue()
        files[f"ToRelease_GFK/data/{name}_SURF_L10_imgs.mat"] = b"names of images"
    return zipped(files)


def _corn() -> bytes:
    content = io.BytesIO()
    instruments = {f"{name}spec": {"data": np.full((2, 700), i)} for i, name in INSTRUMENTS}
    values = np.array([[10.448, 3.687, 8.746, 64.838], [10.409, 3.72, 8.658, 64.851]])
    savemat(content, instruments | {"propvals": {"data": values}, "m5nbs": np.zeros(3)})
    return zipped({"corn.mat": content.getvalue(), "__MACOSX/._corn.mat": b"a fork"})


def _music() -> bytes:
    content = io.BytesIO()
    rows = [[*np.arange(58) + noise, kind, noise] for noise in range(5) for kind in (0, 1)]
    np.save(content, np.array(rows, dtype=np.float64))
    return content.getvalue()


ORIGINALS: dict[str, bytes] = {
    "beijing_air": _air(),
    "communities_crime": _crime(),
    "corn": _corn(),
    "gas_drift": _gas(),
    "gas_turbine": zipped({"gt_2012.csv": TURBINE, "gt_2011.csv": TURBINE}),
    "har": _har(),
    "heart_disease": zipped(
        {
            "processed.va.data": HUNGARY,
            "processed.cleveland.data": HEART,
            "processed.hungarian.data": HUNGARY,
            "reprocessed.hungarian.data": "40 1 2 140 289 0 0 172 0 0 -9 -9 -9 0\n",
        }
    ),
    "music_speech": _music(),
    "office_caltech": _office(),
    "student_performance": zipped(
        {
            ".student.zip_old": "an older archive",
            "student.zip": zipped(
                {
                    "student-mat.csv": STUDENTS + OTHER_STUDENT,
                    "student-por.csv": STUDENTS,
                    "student.txt": "about it",
                }
            ),
        }
    ),
    "support2": SUPPORT.encode(),
    "vowels": VOWELS.encode(),
    "wisdm": taped(
        {
            "WISDM_ar_v1.1/WISDM_ar_v1.1_raw.txt": "33,Jogging,49105962326000,-0.6,12.6,0.5;\n",
            "WISDM_ar_v1.1/WISDM_ar_v1.1_transformed.arff": ARFF,
        }
    ),
}


def put_by_hand(home: Path, name: str, content: bytes) -> None:
    """Put a file where a fetcher looks for the publisher's, with its checksum."""
    path = home / name / SOURCES[name].name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    record = path.with_name(f"{path.name}.sha256")
    record.write_text(hashlib.sha256(content).hexdigest())


def gas_as_published(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays of gas measurements in the publisher's format."""
    files: dict[str, str] = {}
    rows = zip(*(arrays[k] for k in ("domains", "y", "concentration", "X")), strict=True)
    for batch, gas, amount, X in rows:
        values = " ".join(f"{i + 1}:{float(x)!r}" for i, x in enumerate(X))
        name = f"Dataset/{batch}.dat"
        files[name] = files.get(name, "") + f"{gas};{amount:.6f} {values}\n"
    return zipped(files)


def heart_as_published(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays of patients in the publisher's format."""
    files: dict[str, str] = {}
    for hospital, X, grade in zip(arrays["domains"], arrays["X"], arrays["y"], strict=True):
        name = f"processed.{hospital}.data"
        files[name] = files.get(name, "") + ",".join([*map(_number, X), f"{grade}\n"])
    return zipped(files)


def turbine_as_published(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays of a turbine's hours in the publisher's format."""
    header = TURBINE.partition("\n")[0]
    lines: dict[str, list[str]] = {}
    for year, X, y in zip(arrays["domains"], arrays["X"], arrays["y"], strict=True):
        row = [*map(_number, X), "0.1", _number(y)]
        lines.setdefault(f"gt_{year}.csv", [header]).append(",".join(row))
    return zipped({name: "\n".join(rows) for name, rows in lines.items()})


def _number(value: float) -> str:
    return "?" if np.isnan(value) else repr(float(value))


AS_PUBLISHED = {
    "gas": ("gas_drift", gas_as_published),
    "heart": ("heart_disease", heart_as_published),
    "turbine": ("gas_turbine", turbine_as_published),
}
