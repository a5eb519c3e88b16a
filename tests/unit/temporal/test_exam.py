import json
from pathlib import Path

import pytest

from tests.temporal.exam.outcomes import Examination, Result, from_lines, lost, merged, summarise
from tests.temporal.exam.page import render
from tests.temporal.exam.plugin.exam_recorder import Recorder
from tests.temporal.exam.suites import FEATURES, SDK_PYTHON, files_of


def _examination(server: str = "stepwell", **files: list[Result]) -> Examination:
    return Examination(
        suite="sdk-python",
        repository="temporalio/sdk-python",
        revision="84b519e0ff40",
        library="temporalio 1.31.0",
        server=server,
        files={f"tests/{name}.py": results for name, results in files.items()},
    )


def test_what_a_test_does_not_say_itself_is_said_beside_it() -> None:
    test = "tests/worker/test_worker.py::test_worker_deployment_ramp"
    page = render({"sdk-python.stepwell": summarise(_examination(w=[Result(test, "failed", "assert False")]))})

    assert f"| `{test}` | worker deployments are not there: assert False |" in page


def test_a_killed_process_tells_of_every_test_that_ended_and_which_are_left() -> None:
    lines = [
        {"kind": "collected", "tests": ["a.py::one", "a.py::two", "a.py::three"]},
        {"kind": "started", "test": "a.py::one"},
        {"kind": "ended", "test": "a.py::one", "outcome": "passed", "reason": ""},
        {"kind": "started", "test": "a.py::two"},
    ]

    results, left = from_lines(lines, "hung: no end after 105 s")

    assert results == [Result("a.py::one", "passed"), Result("a.py::two", "failed", "hung: no end after 105 s")]
    assert left == ["a.py::three"]


def test_a_file_that_cannot_be_collected_has_failed() -> None:
    results, left = from_lines([{"kind": "unreadable", "test": "a.py", "reason": "No module named 'x'"}])

    assert results == [Result("a.py", "failed", "cannot be collected: No module named 'x'")]
    assert left == []


def test_an_expected_pass_is_lost_when_it_fails_is_skipped_or_is_gone_and_not_when_its_file_did_not_run() -> None:
    found = _examination(
        a=[
            Result("tests/a.py::one", "passed"),
            Result("tests/a.py::two", "failed", "why"),
            Result("tests/a.py::skip", "skipped", "no"),
        ]
    )

    assert lost(
        found, [f"tests/{name}" for name in ("a.py::one", "a.py::two", "a.py::skip", "a.py::gone", "b.py::x")]
    ) == {
        "tests/a.py::two": "failed: why",
        "tests/a.py::skip": "skipped: no",
        "tests/a.py::gone": "it is not there any more",
    }


def test_a_part_that_is_run_again_replaces_its_files_and_no_others() -> None:
    older = _examination(a=[Result("tests/a.py::one", "failed", "why")], b=[Result("tests/b.py::one", "passed")])

    both = merged(older, _examination(a=[Result("tests/a.py::one", "passed")]))

    assert both.passed() == {"tests/a.py::one", "tests/b.py::one"}
    with pytest.raises(ValueError, match="server: 'stepwell' and 'temporal' are not of one run"):
        merged(older, _examination("temporal"))


def test_the_page_counts_by_file_gives_each_reason_and_says_what_fails_against_temporal_too() -> None:
    ours = _examination(
        a=[
            Result("tests/a.py::one", "passed"),
            Result("tests/a.py::two", "failed", "got A | B <x>"),
            Result("tests/a.py::three", "failed", "slow"),
            Result("tests/a.py::four", "skipped", "no Java"),
        ]
    )
    theirs = _examination(
        "temporal", a=[Result("tests/a.py::one", "passed"), Result("tests/a.py::three", "failed", "slow")]
    )

    page = render({"sdk-python.stepwell": summarise(ours), "sdk-python.temporal": summarise(theirs)})

    assert "| sdk-python | 4 | 1 of 3 (33.3 %) | 1 of 2 (50.0 %) |" in page
    assert "| `tests/a.py` | 4 | 1 | 1 | 1 |" in page
    assert "| `tests/a.py::two` | got A \\| B &lt;x> |" in page
    assert "| `tests/a.py::three` | slow (fails against Temporal too) |" in page


def test_files_left_out_are_not_run_and_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    for name in (
        "tests/worker/test_a.py",
        "tests/test_b.py",
        "tests/contrib/aws/deep/test_c.py",
        "tests/test_cloud.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert files_of(SDK_PYTHON, tmp_path) == ["tests/test_b.py", "tests/worker/test_a.py"]
    assert files_of(SDK_PYTHON, tmp_path, ["worker/"]) == ["tests/worker/test_a.py"]
    with pytest.raises(ValueError, match="is it a checkout of temporalio/features"):
        files_of(FEATURES, tmp_path)


def _report(test: str, when: str, outcome: str, longrepr: object = None, **more: object) -> pytest.TestReport:
    return pytest.TestReport(test, ("a.py", 1, test), {}, outcome, longrepr, when, **more)  # type: ignore[arg-type]


def test_the_recorder_takes_the_first_reason_and_counts_an_expected_failure_as_passed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    recorder = Recorder(str(log))
    reports = {
        "a.py::passes": [_report("a.py::passes", "call", "passed")],
        "a.py::fails": [
            _report("a.py::fails", "call", "failed", "x\nE  first"),
            _report("a.py::fails", "teardown", "failed", "second"),
        ],
        "a.py::skips": [_report("a.py::skips", "setup", "skipped", ("a.py", 1, "Skipped: no Java"))],
        "a.py::xfails": [_report("a.py::xfails", "call", "skipped", "known", wasxfail="known")],
    }
    for test, of_test in reports.items():
        recorder.pytest_runtest_logstart(test)
        for report in of_test:
            recorder.pytest_runtest_logreport(report)
        recorder.pytest_runtest_logfinish(test)

    results, _ = from_lines(json.loads(line) for line in log.read_text().splitlines())
    assert [(result.outcome, result.reason) for result in results] == [
        ("passed", ""),
        ("failed", "E first"),
        ("skipped", "no Java"),
        ("passed", ""),
    ]


def test_reasons_that_are_kept_name_no_path_of_the_machine_and_no_id_of_the_run() -> None:
    reason = (
        "UUID('65287a1b-b1d5-48ab-be24-73510ba8d298') at 0x7ff6c5dfb220 in /home/me/x/y.py, of https://host.example/a/b"
    )
    kept = summarise(_examination(a=[Result("tests/a.py::one", "failed", reason)]))

    [failed] = kept.files["tests/a.py"].failed
    assert failed.reason == "UUID('…') at … in …, of https://host.example/a/b"
