"""Laws of the summary: its numbers are those that SciPy gives for the same scores."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from made_records import failed, main_study, pacs, record
from skdare.bench._record import pack_bits
from skdare.report import summarise
from skdare.report.summary.grid import Sweep, estimate, gather
from skdare.report.summary.main_study import MainStudy
from skdare.report.summary.statistics import holm, joint_sign_flip, mark_best

DOMAINS = ("art", "cartoon", "photo")
SCORES = {
    "erm": [[0.80, 0.82, 0.81], [0.70, 0.74, 0.71], [0.95, 0.96, 0.94]],
    "irm": [[0.79, 0.83, 0.80], [0.71, 0.73, 0.72], [0.95, 0.95, 0.95]],
    "dare": [[0.84, 0.85, 0.85], [0.72, 0.77, 0.73], [0.94, 0.96, 0.96]],
}
LOST = ("dare", "photo", 1)


def main_of(records) -> MainStudy:
    """The main study of the only group."""
    [group] = summarise(records).groups
    assert group.main is not None
    return group.main


def summarised(scores=SCORES) -> MainStudy:
    return main_of(main_study(scores, DOMAINS))


@pytest.mark.parametrize("head", SCORES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_mean_and_intervals_of_a_domain_equal_those_of_scipy(head, domain):
    x = np.array(SCORES[head][DOMAINS.index(domain)])
    estimated = estimate(summarised().grid.at(head, domain))
    error = stats.sem(x)
    low, high = stats.t.interval(0.9, len(x) - 1, x.mean(), error)
    assert estimated.mean == pytest.approx(x.mean())
    assert (estimated.t.low, estimated.t.high) == pytest.approx((low, high))
    assert estimated.normal.half_width == pytest.approx(1.645 * error)


@pytest.mark.parametrize("head", SCORES)
def test_average_and_worst_domain_are_taken_within_each_trial(head):
    S, grid = np.array(SCORES[head]), summarised().grid
    np.testing.assert_allclose(grid.average(head), S.mean(axis=0))
    np.testing.assert_allclose(grid.worst(head), S.min(axis=0))


def test_the_worst_domain_of_an_error_is_the_one_where_it_is_largest():
    records = [record("dare", d, metric="error", score=s) for d, s in (("a", 0.1), ("b", 0.4))]
    assert gather(records).worst("dare") == pytest.approx([0.4])


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("head", ["irm", "dare"])
def test_trials_are_the_units_of_the_test_on_one_domain(head, domain):
    e = DOMAINS.index(domain)
    difference = summarised().comparison.by_domain[domain][head].difference
    expected = stats.ttest_rel(SCORES[head][e], SCORES["erm"][e], alternative="greater")
    assert difference.p == pytest.approx(expected.pvalue)
    assert difference.sign_flip.smallest == 1 / 8


@pytest.mark.parametrize("head", ["irm", "dare"])
def test_domain_means_are_the_units_of_the_test_across_domains(head):
    ours, theirs = (np.mean(SCORES[h], axis=1) for h in (head, "erm"))
    difference = summarised().comparison.across_domains[head].difference
    expected = stats.ttest_rel(ours, theirs, alternative="greater")
    both = stats.ttest_rel(ours, theirs).confidence_interval(0.9)
    assert difference.p == pytest.approx(expected.pvalue)
    assert (difference.low, difference.high) == pytest.approx((both.low, both.high))
    assert difference.n == len(DOMAINS)


def test_holm_corrects_over_the_heads():
    across = summarised().comparison.across_domains
    by_t = holm({head: p.difference.p for head, p in across.items()})
    assert {head: p.holm for head, p in across.items()} == by_t


def test_the_sign_flip_test_over_domains_is_corrected_over_the_heads():
    across = summarised().comparison.across_domains
    means = {head: np.mean(rows, axis=1) for head, rows in SCORES.items()}
    D = np.stack([means[head] - means["erm"] for head in across])
    assert [test.higher for test in across.values()] == pytest.approx(list(joint_sign_flip(D)))
    assert [test.lower for test in across.values()] == pytest.approx(list(joint_sign_flip(-D)))
    assert {test.heads for test in across.values()} == {2}


def test_a_head_that_lacks_a_domain_is_flipped_with_the_others_on_its_own_domains():
    lost = [r for r in main_study(SCORES, DOMAINS) if (r.head, r.held_out) != ("irm", "art")]
    across = main_of(lost).comparison.across_domains
    means = {head: np.mean(rows, axis=1) for head, rows in SCORES.items()}
    D = np.stack([means[head] - means["erm"] for head in across])
    D[list(across).index("irm"), DOMAINS.index("art")] = np.nan
    assert across["irm"].difference.n == 2
    assert [test.higher for test in across.values()] == pytest.approx(list(joint_sign_flip(D)))


def test_marks_are_given_among_heads_that_saw_nothing():
    best = {"adapted": (np.array(SCORES["dare"]) + 0.02).tolist()}
    main = summarised(SCORES | best)
    assert main.competitors == ("erm", "irm", "dare")
    for e, domain in enumerate(DOMAINS):
        assert main.marks[domain] == mark_best({h: SCORES[h][e] for h in SCORES}, "erm")
    assert "adapted" in main.comparison.across_domains


def test_every_head_that_the_advice_could_pick_counts_in_the_correction():
    best = {"adapted": (np.array(SCORES["dare"]) + 0.02).tolist()}
    across = summarised(SCORES | best).comparison.across_domains
    assert {test.heads for test in across.values()} == {3}
    assert {h: t.holm for h, t in across.items()} == holm(
        {head: test.difference.p for head, test in across.items()}
    )


@pytest.mark.parametrize(
    ("heads", "baseline"), [(("dare", "erm"), "erm"), (("adapted", "irm", "dare"), "irm")]
)
def test_the_baseline_is_erm_or_the_first_head_that_saw_nothing(heads, baseline):
    assert summarised(dict.fromkeys(heads, SCORES["erm"])).baseline == baseline


def test_the_order_in_which_records_finish_changes_no_number():
    records = list(pacs().main())
    shuffled = [records[i] for i in np.random.default_rng(0).permutation(len(records))]
    a = main_of(records)
    b = main_of(shuffled)
    assert a.grid.domains == b.grid.domains
    assert dict(a.comparison.across_domains) == dict(b.comparison.across_domains)
    assert set(a.grid.lines) == set(b.grid.lines)
    for head in a.grid.lines:
        np.testing.assert_array_equal(a.grid.of(head), b.grid.of(head))


def test_domains_stand_in_natural_order():
    records = [record(held_out=d) for d in ("batch 10", "batch 9", "art", "batch 1")]
    assert gather(records).domains == ("art", "batch 1", "batch 9", "batch 10")


def test_a_failed_trial_is_listed_and_counts_in_no_mean():
    records = [r for r in main_study(SCORES, DOMAINS) if (r.head, r.held_out, r.trial) != LOST]
    [group] = summarise([*records, failed(*LOST, "SolverError: no descent")]).groups
    assert group.main is not None
    grid = group.main.grid
    by_domain = group.main.comparison.by_domain
    [failure] = group.failures
    assert (failure.head, failure.held_out, failure.trial) == LOST
    assert failure.reason == "SolverError: no descent"
    assert estimate(grid.at("dare", "photo")).n == 2
    assert by_domain["photo"]["dare"].difference.n == 2
    assert math.isnan(grid.average("dare")[LOST[2]])
    assert group.missing == 0


def test_a_trial_that_is_not_on_record_is_counted_as_missing():
    records = [r for r in main_study(SCORES, DOMAINS) if (r.head, r.held_out, r.trial) != LOST]
    [group] = summarise(records).groups
    assert group.missing == 1
    assert group.failures == ()


@pytest.mark.parametrize("head", ["erm", "dare"])
def test_a_head_that_failed_everywhere_breaks_nothing(head):
    records = [
        failed(r.head, r.held_out, r.trial, "no luck") if r.head == head else r
        for r in main_study(SCORES, DOMAINS)
    ]
    [group] = summarise(records).groups
    assert group.main is not None
    assert math.isnan(estimate(group.main.grid.average(head)).mean)
    assert len(group.failures) == 9
    assert head not in group.main.comparison.across_domains


def test_one_trial_has_no_interval_and_no_marks():
    main = summarised({head: [row[:1] for row in rows] for head, rows in SCORES.items()})
    assert math.isnan(estimate(main.grid.average("dare")).t.half_width)
    assert {mark for marks in main.marks.values() for mark in marks.values()} == {""}
    assert math.isnan(main.comparison.by_domain["art"]["dare"].difference.p)


def test_mcnemar_is_made_on_the_rows_of_the_first_trial_and_pooled_over_domains():
    rng = np.random.default_rng(0)
    right = {}
    records = []
    for r in main_study(SCORES, DOMAINS):
        correct = rng.random(50) < (r.score or 0.0)
        right[r.head, r.held_out, r.trial] = correct
        values = r.values | {"correct": pack_bits(correct), "n_test": 50}
        records.append(replace(r, values=values))
    comparison = main_of(records).comparison
    ours, theirs = (np.concatenate([right[h, d, 0] for d in DOMAINS]) for h in ("dare", "erm"))
    test = comparison.all_rows["dare"].test
    alone = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    assert (test.only_a, test.only_b, test.n) == (*alone, 150)
    assert test.p == pytest.approx(stats.binomtest(alone[0], sum(alone)).pvalue)
    one = right["dare", "art", 0] & ~right["erm", "art", 0]
    assert comparison.rows_by_domain["art"]["dare"].test.only_a == one.sum()


def test_rows_that_come_in_groups_are_no_units_of_a_test():
    records = [replace(r, values=r.values | {"n_groups": 40}) for r in pacs().main()]
    assert main_of(list(pacs().main())).comparison.all_rows
    comparison = main_of(records).comparison
    assert comparison.grouped
    assert comparison.all_rows == {}
    assert not any(comparison.rows_by_domain.values())


def test_heads_whose_rows_are_not_on_record_have_no_mcnemar():
    assert summarised().comparison.all_rows == {}
    assert summarised().comparison.rows_by_domain == {domain: {} for domain in DOMAINS}


def test_data_sets_and_protocols_are_groups_in_order_of_appearance():
    records = [
        record(data=data, protocol=protocol)
        for data, protocol in (("b", "paper"), ("a", "default"), ("b", "default"), ("b", "paper"))
    ]
    groups = summarise(records).groups
    assert [(g.data, g.protocol) for g in groups] == [
        ("b", "paper"),
        ("a", "default"),
        ("b", "default"),
    ]


def test_every_study_of_a_run_finds_its_place():
    [group] = summarise(pacs().whole()).groups
    assert group.main is not None
    assert group.main.reserved is not None
    assert group.ceilings is not None
    assert group.curve is not None
    assert "ceiling-exact (pretrained features)" in group.ceilings.lines
    assert group.curve.lines == ("retrain", "retrain+sources")
    assert list(group.ablations) == [
        "whitening",
        "constraint",
        "mean",
        "lambda",
        "shrinkage",
        "dimension",
        "domains",
    ]
    assert not isinstance(group.ablations["whitening"], Sweep)
    shrinkage = group.ablations["shrinkage"]
    assert isinstance(shrinkage, Sweep)
    assert shrinkage.lines == ("dare",)
    assert shrinkage.level is not None
    assert shrinkage.level.lines == ("erm",)


def test_a_sweep_has_its_zero_and_its_values_ascend():
    values = (10.0, 0.0, 1.0)
    records = [record("dare", study="ablation:lambda", x=x, score=x / 100) for x in values]
    [group] = summarise(records).groups
    sweep = group.ablations["lambda"]
    assert isinstance(sweep, Sweep)
    assert sweep.x == (0.0, 1.0, 10.0)
    assert [e.mean for e in sweep.averages("dare")] == pytest.approx([0.0, 0.01, 0.1])


def test_a_value_that_some_domain_lacks_has_no_average():
    records = [record("retrain", d, study="curve", x=x) for d in "ab" for x in (1.0, 2.0)]
    [group] = summarise(records[:-1]).groups
    assert group.curve is not None
    assert group.curve.x == (1.0, 2.0)
    assert group.curve.complete().x == (1.0,)


def test_sets_of_training_domains_of_one_size_are_averaged():
    records = [
        replace(record(study="ablation:domains", x=2.0, score=s), values={"seen": seen})
        for s, seen in ((0.5, "a, b"), (0.6, "a, c"), (0.9, "b, c"), (0.7, "b, c"))
    ]
    [group] = summarise(records).groups
    sweep = group.ablations["domains"]
    assert isinstance(sweep, Sweep)
    assert sweep.averages("erm")[0].mean == pytest.approx(0.6)


def test_heads_beside_ceilings_are_scored_on_the_same_rows():
    ours = record(
        "erm", study="ablation:dimension", x=8.0, score=0.9, values={"score_reserved": 0.7}
    )
    top = record("ceiling-exact", study="ablation:dimension", x=8.0, uses="labels")
    top = replace(top, values={"score_reserved": 0.8})
    [group] = summarise([ours, top]).groups
    sweep = group.ablations["dimension"]
    assert isinstance(sweep, Sweep)
    assert [sweep.averages(h)[0].mean for h in ("erm", "ceiling-exact")] == [0.7, 0.8]


def test_projections_are_lines_of_their_own_only_where_there_are_several():
    def lines(*kinds: str) -> tuple[str, ...]:
        values = [{"option:projection": kind} for kind in kinds]
        records = [record(study="ablation:dimension", x=8.0, values=v) for v in values]
        return summarise(records).groups[0].ablations["dimension"].lines

    assert lines("random") == ("erm",)
    assert lines("random", "pca") == ("erm (random projection)", "erm (pca projection)")


def test_conditions_hold_every_version_option_and_warning_that_occurs():
    records = [
        record(trial=t, seconds=2.0, values={"version:numpy": v, "option:l2": l2, "warnings": w})
        for t, (v, l2, w) in enumerate(
            [("2.2", 0.1, "slow | far"), ("2.3", 0.1, None), ("2.3", 1.0, "slow")]
        )
    ]
    conditions = summarise(records).groups[0].conditions
    assert conditions.versions == {"numpy": ("2.2", "2.3")}
    assert conditions.options == {"erm": {"l2": ("0.1", "1.0")}}
    assert conditions.warnings == {"slow": 2, "far": 1}
    assert conditions.seconds == 6.0
    assert conditions.trials == (0, 1, 2)


def test_no_records_are_no_groups():
    assert summarise([]).groups == ()
