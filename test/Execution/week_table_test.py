#!/usr/bin/env python3
"""Each row of the table "A week of training" in docs/running.md has tests that execute it: those named here."""

import pathlib
import re

import tools

PAGE = tools.TEST_DIR.parent / "docs" / "running.md"
HEADING = "## A week of training"

WEEK, FAULTS, RUN, RANKS = "week_test.py", "week_faults_test.py", "resume_test.py", "processes_test.py"
LOOP, SAVER, SAVE = (f"../Unit/Train/{name}_test.cc" for name in ("train_loop", "checkpoint_saver", "parallel_save"))

# A phrase that one row alone has, and the tests: a file from the folder of this one on, and functions in it.
TESTS = {
    "an evaluation fails, its loss is not finite": {
        WEEK: ["test_metrics_that_a_full_disk_does_not_take_end_the_run_with_its_last_step_saved",
               "test_data_that_somebody_makes_shorter_ends_the_run_with_its_last_step_saved",
               "test_an_evaluation_that_is_not_finite_has_the_exit_code_of_training"],
        FAULTS: ["test_evaluation_data_that_somebody_makes_shorter_end_the_run_with_its_last_step_saved",
                 "test_ids_that_somebody_changes_end_the_run_with_its_last_step_saved"],
        LOOP: ["WhatFailsBesideTheStepsCostsNone", "AnEvaluationThatIsNoNumberIsSavedBeforeAndAnError"]},
    "the disk of `--metrics` is full": {
        WEEK: ["test_no_line_of_metrics_is_lost_on_a_full_disk", "test_restarts_give_up_on_a_full_disk"]},
    "the program that reads `--metrics` from a pipe ends": {
        WEEK: ["test_a_pipe_whose_reader_goes_ends_the_run_with_its_last_step_saved"],
        FAULTS: ["test_a_restart_does_not_wait_for_a_reader_that_went"]},
    "no process reads the pipe of `--metrics` yet": {WEEK: ["test_a_pipe_that_nobody_reads_is_waited_for"]},
    "lacks steps before the checkpoint": {WEEK: ["test_steps_that_the_metrics_lack_are_named"]},
    "has lines of another run, or another run is writing it": {
        WEEK: ["test_no_run_writes_over_the_metrics_of_another", "test_two_runs_at_a_time_do_not_share_metrics"]},
    "a stop signal comes during an evaluation": {
        WEEK: ["test_a_stop_during_an_evaluation_saves_and_the_run_evaluates_when_it_is_resumed",
               "test_an_evaluation_that_was_due_is_made_up_for"],
        FAULTS: ["test_signals_during_an_evaluation_of_ranks_save_the_last_step"]},
    "a run that has taken all of its steps is resumed": {
        WEEK: ["test_another_evaluation_of_a_finished_run_is_recorded"]},
    "`--keep` cannot delete an old checkpoint": {
        FAULTS: ["test_files_that_nobody_may_delete_are_a_note", "test_a_checkpoint_on_a_disk_of_its_own_is_a_note"]},
    "is outside of the vocabulary": {
        "data_test.py": ["test_an_id_outside_is_named_before_step_1_on_several_ranks"]},
    "the save directory cannot be written, or a rank does not see it": {
        WEEK: ["test_a_directory_that_cannot_be_written_is_said_before_step_1"],
        RANKS: ["test_a_directory_that_a_rank_does_not_share"]},
    "has no room for one checkpoint": {WEEK: ["test_a_disk_without_room_for_a_checkpoint_is_a_note"]},
    "the disk is full when a checkpoint is written": {
        WEEK: ["test_restarts_give_up_where_no_start_gets_further"],
        "bad_input_test.py": ["test_a_full_disk_while_saving_keeps_what_was_saved"]},
    "for longer than `--timeout`": {
        RANKS: ["test_a_rank_that_saves", "test_rank_zero_that_saves", "test_a_rank_that_stops_while_it_saves_is_lost",
                "test_a_rank_that_loads_a_checkpoint", "test_a_rank_that_loads_weights"],
        "../Unit/Train/token_scan_test.cc": ["ARankThatReadsForLongIsWaitedFor"],
        "../Unit/Train/slow_data_test.cc": ["ARankWhoseDataOfAStepComeLateIsWaitedFor",
                                            "ARankWhoseDataOfAnEvaluationComeLateIsWaitedFor"]},
    "a save takes longer than a step": {
        WEEK: ["test_saves_beside_the_steps_are_those_of_the_steps"],
        RANKS: ["test_steps_go_on_beside_a_save"],
        SAVER: ["StepsWaitWhereACopyDoesNotFit"]},
    "the plan was compiled with another learning rate": {
        WEEK: ["test_another_recipe_is_refused_or_recorded", "test_every_setting_of_the_optimizer_is_compared",
               "test_another_optimizer_is_no_change_that_can_be_allowed"]},
    "somebody deletes or moves the save directory": {
        FAULTS: ["test_a_directory_that_is_moved_is_made_again", "test_a_lock_that_is_deleted_is_taken_again",
                 "test_a_directory_that_another_run_has_by_then_is_left_to_it"]},
    "a checkpoint has its name, and `latest` cannot be written": {
        FAULTS: ["test_a_checkpoint_that_does_not_become_the_latest_is_complete"]},
    "rank 0 fails in a step while other ranks write a checkpoint": {
        SAVER: ["ASaveThatOthersStillWriteIsWaitedFor"]},
    "a second run saves into the directory of the first one": {
        WEEK: ["test_a_second_run_into_a_save_directory_is_refused"],
        SAVER: ["IsOfAnotherRunThoughItsLatestCannotBeRead"]},
    "the directory holds checkpoints of several runs": {
        WEEK: ["test_keep_deletes_checkpoints_of_its_own_run_alone"],
        FAULTS: ["test_a_save_that_would_replace_a_checkpoint_of_another_run_is_named_before_step_1"]},
    "a variable of a script is empty": {WEEK: ["test_an_empty_value_is_not_the_same_as_no_flag"]},
    "a loss or a gradient is infinite or NaN": {
        FAULTS: ["test_a_gradient_that_is_not_finite_under_a_finite_loss_ends_the_run"],
        "../Unit/Train/bowline_run_test.cc": ["ALossThatIsNoNumberNamesItsStep"],
        SAVER: ["ASaveInTheBackgroundOutlivesALossThatIsNoNumber"]},
    "a step fails while it computes": {
        FAULTS: ["test_a_step_that_fails_while_it_computes_keeps_the_checkpoint_before_it"],
        "wrong_data_test.py": ["test_row_numbers_of_a_table_on_several_ranks"]},
    "a parameter or a state of the optimizer is infinite or NaN": {
        WEEK: ["test_a_state_that_is_not_finite_is_not_saved_though_the_loss_is"],
        FAULTS: ["test_a_moment_that_is_not_finite_is_not_saved_though_parameters_are"]},
    "the checkpoint that is resumed holds such a value": {WEEK: ["test_a_checkpoint_that_is_not_finite_is_not_resumed"]},
    "`--weights` of training hold such a value": {WEEK: ["test_weights_that_are_not_finite_are_refused_before_step_1"]},
    "is of another step, run or settings": {
        WEEK: ["test_files_of_another_run_are_refused", "test_a_changed_state_is_refused"],
        FAULTS: ["test_settings_that_somebody_changed_in_a_checkpoint_are_no_recipe"]},
    "a file is cut off or missing": {WEEK: ["test_a_damaged_checkpoint_names_the_one_before_it"]},
    "`latest` names a checkpoint that is gone": {
        WEEK: ["test_a_latest_checkpoint_that_is_gone_is_named"], RUN: ["test_latest_may_name_an_earlier_step"]},
    "`--save` names a checkpoint instead": {WEEK: ["test_a_checkpoint_is_no_directory_to_save_into"]},
    "the directory of `--weights` holds weights": {WEEK: ["test_weights_beside_checkpoints_are_told_apart"]},
    "the checkpoint has no `config.json`": {WEEK: ["test_a_checkpoint_without_a_config_is_resumed_with_a_note"]},
    "SIGTERM, SIGINT, SIGUSR1, SIGHUP": {
        WEEK: ["test_a_signal_while_ranks_start_has_the_exit_code_of_a_stop"],
        FAULTS: ["test_signals_while_ranks_start_lose_nothing"],
        RANKS: ["test_nproc_passes_signals_on", "test_a_signal_to_one_rank_stops_all"]},
    "a rank dies": {
        RANKS: ["test_a_rank_that_is_killed_or_stopped", "test_nproc_ends_all_when_one_is_killed",
                "test_ranks_that_die_or_stop_change_no_bit"]},
}


def events_of(page):
    """The first cells of the table below the heading."""
    section = page.split(f"\n{HEADING}\n")[1]
    lines = section[section.index("| event |"):].splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith("|"))
    return [line.split("|")[1].strip() for line in lines[2:end]]


def problems_of(events, tests, folder):
    """Rows and entries without each other, and tests that are not there."""
    problems = [f"no entry, or several, for the row '{event}'" for event in events
                if sum(phrase in event for phrase in tests) != 1]
    problems += [f"no row, or several, for the entry '{phrase}'" for phrase in tests
                 if sum(phrase in event for event in events) != 1]
    for phrase, files in tests.items():
        if not any(files.values()):
            problems.append(f"no test in the entry '{phrase}'")
        for file, names in files.items():
            path = folder / file
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            for name in names:
                how = rf"^TEST(_F|_P)?\(\w+, {name}\)" if file.endswith(".cc") else rf"^    def {name}\(self"
                if not re.search(how, text, re.MULTILINE):
                    problems.append(f"{file} has no test {name}, which the entry '{phrase}' names")
    return problems


class Table(tools.ToolTest):
    HERE = pathlib.Path(__file__).resolve().parent

    def test_each_row_has_its_tests(self):
        events = events_of(PAGE.read_text(encoding="utf-8"))
        self.assertGreater(len(events), 30)
        self.assertEqual(problems_of(events, TESTS, self.HERE), [])

    def test_a_row_an_entry_or_a_test_too_many_is_named(self):
        (self.folder / "a_test.py").write_text("class A:\n    def test_a(self):\n        pass\n")
        (self.folder / "b_test.cc").write_text("TEST_F(B, IsB) {}\n")
        good = {"falls": {"a_test.py": ["test_a"]}, "rises": {"b_test.cc": ["IsB"]}}
        self.assertEqual(problems_of(["it falls", "it rises"], good, self.folder), [])
        self.assertEqual(problems_of(["it falls", "it rises", "it stays"], good, self.folder),
                         ["no entry, or several, for the row 'it stays'"])
        self.assertEqual(problems_of(["it falls"], good, self.folder), ["no row, or several, for the entry 'rises'"])
        for files in ({"a_test.py": ["test_b"]}, {"b_test.cc": ["Is"]}, {"c_test.py": ["test_a"]}, {}):
            found = problems_of(["it falls", "it rises"], {**good, "falls": files}, self.folder)
            self.assertEqual(len(found), 1, found)


if __name__ == "__main__":
    tools.main()
