"""A backend that is wrong in one way fails the tests that are meant for it, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from flowsched.backend import Backend
from tests.testing import suites_of_wrong_backends as suites
from tests.testing import wrong_backends as wrong

ROOT = Path(__file__).parents[2]

EXPECTED: Mapping[str, set[str]] = {
    "Wrong": set(),
    "LosesTheTail": {
        "test_rows_come_back_in_order_though_calls_end_in_another",
        "test_several_sources_and_outputs",
        "test_models_are_functions_classes_and_partials_of_either",
        "test_a_node_starts_after_all_calls_of_those_it_comes_after",
        "test_any_replicas_and_batch_sizes_give_what_the_reference_gives",
        "test_fewer_samples_than_replicas_are_no_trouble",
    },
    "PadsTheTail": {
        "test_rows_come_back_in_order_though_calls_end_in_another",
        "test_several_sources_and_outputs",
        "test_models_are_functions_classes_and_partials_of_either",
        "test_a_node_starts_after_all_calls_of_those_it_comes_after",
        "test_any_replicas_and_batch_sizes_give_what_the_reference_gives",
        "test_fewer_samples_than_replicas_are_no_trouble",
    },
    "SwapsTwoRows": {
        "test_rows_come_back_in_order_though_calls_end_in_another",
        "test_several_sources_and_outputs",
        "test_nodes_may_be_declared_in_any_order",
        "test_models_are_functions_classes_and_partials_of_either",
        "test_any_replicas_and_batch_sizes_give_what_the_reference_gives",
        "test_fewer_samples_than_replicas_are_no_trouble",
        "test_a_worker_may_return_its_input_itself",
    },
    "CallsTwice": {
        "test_the_calls_of_the_plan_are_made_once_each_and_no_others",
        "test_each_sample_passes_each_node_once_in_balanced_calls_below_the_cap",
        "test_a_replica_makes_its_calls_one_at_a_time_in_the_order_of_the_plan",
        "test_replicas_that_several_nodes_share_make_calls_one_at_a_time_in_the_order_of_the_plan",
    },
    "IgnoresAfter": {"test_a_node_starts_after_all_calls_of_those_it_comes_after"},
    "HasBarriers": {
        "test_a_call_starts_as_soon_as_its_fragments_are_there",
        "test_the_first_wave_of_a_producer_feeds_all_replicas_of_a_consumer",
    },
    "UsesOneReplica": {
        "test_two_methods_of_one_model_are_served_by_the_same_replicas",
        "test_a_method_is_called_also_where_it_is_the_only_one",
        "test_the_calls_of_the_plan_are_made_once_each_and_no_others",
        "test_each_sample_passes_each_node_once_in_balanced_calls_below_the_cap",
        "test_a_replica_makes_its_calls_one_at_a_time_in_the_order_of_the_plan",
        "test_replicas_that_several_nodes_share_make_calls_one_at_a_time_in_the_order_of_the_plan",
        "test_all_replicas_of_a_node_work_at_the_same_time",
        "test_the_first_wave_of_a_producer_feeds_all_replicas_of_a_consumer",
    },
    "StartsInReverse": {
        "test_a_replica_makes_its_calls_one_at_a_time_in_the_order_of_the_plan",
        "test_replicas_that_several_nodes_share_make_calls_one_at_a_time_in_the_order_of_the_plan",
        "test_a_call_starts_as_soon_as_its_fragments_are_there",
        "test_the_first_wave_of_a_producer_feeds_all_replicas_of_a_consumer",
    },
    "Misaligns": {"test_all_inputs_of_a_call_hold_its_samples_in_order"},
    "BuildsForEachStep": {
        "test_constructors_are_called_once_a_replica_for_steps_of_any_size",
        "test_a_replica_keeps_its_state_from_step_to_step",
        "test_running_a_plan_once_builds_only_the_replicas_that_it_uses",
    },
    "FailsLate": {"test_a_failure_surfaces_at_once_while_others_are_busy"},
    "HidesTheCause": {
        "test_a_worker_that_raises_is_told_with_its_place_and_its_own_exception",
        "test_the_traceback_of_the_worker_is_shown",
        "test_what_caused_the_exception_of_a_worker_is_shown_too",
        "test_a_failure_surfaces_at_once_while_others_are_busy",
        "test_even_exceptions_that_end_programs_are_told_as_failures_of_a_worker",
    },
    "DropsTheTraceback": {"test_the_traceback_of_the_worker_is_shown"},
    "MasksTheFailure": {
        "test_a_worker_that_raises_is_told_with_its_place_and_its_own_exception",
        "test_the_traceback_of_the_worker_is_shown",
        "test_what_caused_the_exception_of_a_worker_is_shown_too",
        "test_the_samples_of_an_error_are_those_of_the_step_where_rows_are_several_a_sample",
        "test_a_failure_surfaces_at_once_while_others_are_busy",
        "test_a_session_whose_step_failed_ends_at_once_while_others_are_busy",
        "test_workers_that_ask_learn_that_their_step_has_failed",
        "test_the_first_failure_is_the_one_that_is_raised",
        "test_even_exceptions_that_end_programs_are_told_as_failures_of_a_worker",
        "test_a_replica_makes_no_further_call_after_one_that_failed",
        "test_a_failure_deep_in_the_graph_ends_what_waits_for_it",
        "test_a_failure_ends_what_comes_after_it",
    },
    "DropsCancellation": {
        "test_workers_that_ask_learn_that_their_step_has_failed",
        "test_the_first_failure_is_the_one_that_is_raised",
    },
    "IgnoresTheLimit": {
        "test_calls_of_a_node_that_are_needed_at_once_stay_within_max_in_flight",
        "test_calls_of_a_node_that_are_needed_at_once_are_few_by_default",
        "test_calls_that_are_needed_at_once_stay_few_where_several_nodes_read_them",
        "test_live_outputs_of_a_node_stay_within_max_in_flight",
        "test_live_outputs_of_a_node_are_few_by_default",
        "test_live_outputs_stay_few_where_a_consumer_is_slow",
        "test_live_outputs_stay_few_where_several_nodes_read_them",
        "test_a_node_that_needs_everything_does_not_wait_for_itself",
    },
    "LeavesAThread": {
        "test_two_methods_of_one_model_are_served_by_the_same_replicas",
        "test_the_second_node_of_a_replica_sees_what_all_calls_of_the_first_left",
        "test_a_node_without_a_method_calls_the_shared_replica_itself",
        "test_a_method_is_called_also_where_it_is_the_only_one",
    },
    "CountsRowsWrongly": {
        "test_totals_are_exact_and_each_call_ends_once",
        "test_totals_are_exact_where_rows_become_several_and_replicas_are_shared",
    },
    "ForgetsToTell": {
        "test_totals_are_exact_and_each_call_ends_once",
        "test_totals_are_exact_where_rows_become_several_and_replicas_are_shared",
        "test_the_replicas_are_told_first_and_each_step_between_its_start_and_its_end",
        "test_the_calls_of_a_replica_are_told_in_the_order_of_its_queue",
        "test_a_call_is_told_before_those_that_read_it",
    },
    "LetsWorkersWrite": {"test_writing_into_an_array_that_others_read_is_refused_with_the_mend"},
    "WidensBfloat16": {
        "test_a_column_survives_being_cut_and_joined_in_several_ways",
        "test_a_column_of_one_row_is_no_special_case",
    },
    "ForgetsTheStep": {
        "test_chance_depends_on_the_seed_of_the_session_and_on_the_step",
        "test_steps_of_a_session_are_numbered_from_zero",
    },
    "SwallowsCtrlC": {
        "test_an_interrupted_program_ends_although_its_workers_do_not",
        "test_workers_that_ask_end_before_the_interruption_is_raised",
        "test_an_interrupted_session_is_over_and_another_one_works",
    },
    "MasksALoss": {
        "test_a_replica_that_dies_in_a_call_ends_the_step_with_its_place",
        "test_a_replica_that_dies_is_told_while_others_are_busy",
        "test_a_replica_that_dies_before_its_readers_is_the_one_that_is_told",
        "test_after_a_loss_another_session_works",
    },
    "LacksEverything": set(),
}
"""By the name of a wrong backend, the tests that must fail of those parts that it is run against."""


class Told(NamedTuple):
    """What a run of pytest told of one backend, parameters of tests left out.

    Attributes:
        passed: tests that passed with some parameters.
        failed: tests that failed, in the test or in what is looked for after it.
        skipped: tests that were skipped, and why.
        words: the messages of all failures.
    """

    passed: set[str]
    failed: set[str]
    skipped: dict[str, str]
    words: str


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Told]:
    """What the suite told of each wrong backend, in one run in a process of its own."""
    report = tmp_path_factory.mktemp("wrong") / "report.xml"
    command = [sys.executable, "-m", "pytest", suites.__file__, f"--junitxml={report}", "-q", "--tb=short"]
    subprocess.run(
        [*command, "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"],
        cwd=ROOT,
        capture_output=True,
        timeout=250,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        check=False,
    )
    found: dict[str, Told] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        backend = case.attrib["classname"].rpartition(".Test")[2]
        one = found.get(backend, Told(set(), set(), {}, ""))
        name = case.attrib["name"].partition("[")[0]
        bad = [child for child in case if child.tag in ("failure", "error")]
        skips = [child for child in case if child.tag == "skipped"]
        if bad:
            one.failed.add(name)
        elif skips:
            one.skipped[name] = skips[0].attrib["message"]
        else:
            one.passed.add(name)
        words = "\n".join([one.words, *(child.attrib["message"] for child in bad)])
        found[backend] = one._replace(words=words)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", EXPECTED)
def test_a_wrong_backend_fails_the_tests_that_are_meant_for_it(
    told: Mapping[str, Told], backend: str
) -> None:
    assert told[backend].failed == EXPECTED[backend]


def test_every_wrong_backend_is_run() -> None:
    kinds = {
        name
        for name, kind in vars(wrong).items()
        if isinstance(kind, type) and issubclass(kind, Backend) and kind.__module__ == wrong.__name__
    }
    assert kinds == set(EXPECTED)


@pytest.mark.timeout(300)
def test_what_a_backend_lacks_is_skipped_by_name_and_the_rest_is_run(told: Mapping[str, Told]) -> None:
    bare = told["LacksEverything"]
    for test, feature in {
        "test_samples_may_collapse_into_one_row": "expand, group and collapse",
        "test_an_observer_is_never_called_by_two_at_once": "observer",
        "test_a_failure_ends_what_comes_after_it": "after",
        "test_after_and_shared_replicas_go_on_with_one_call_in_flight": "after",
        "test_the_first_failure_is_the_one_that_is_raised": "cancellation",
        "test_a_replica_that_dies_in_its_constructor_fails_the_start": "isolation",
    }.items():
        assert bare.skipped[test] == f"backend 'bare' lacks '{feature}'"
    assert "test_a_graph_that_needs_a_feature_starts_or_is_refused_with_both_names" in bare.passed
    assert "test_a_failure_surfaces_at_once_while_others_are_busy" in bare.passed
    assert told["Wrong"].skipped == {}


@pytest.mark.timeout(300)
def test_failures_say_what_was_found(told: Mapping[str, Told]) -> None:
    assert "left running: ['<Thread(left" in told["LeavesAThread"].words
    assert "(dtype('int64'), (32,)) and (dtype('int64'), (33,))" in told["LosesTheTail"].words
    assert "assert ('a', " in told["HidesTheCause"].words or "NoneType" in told["HidesTheCause"].words
