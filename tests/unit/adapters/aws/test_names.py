import re

import pytest

from stepwell_server.adapters.aws.names import NameRefused, Names, namespace_tag


@pytest.mark.parametrize("cell", ["", "Main", "a_b", "-a", "a-", "a" * 17, "a.b", "ü"])
def test_a_cell_that_aws_would_refuse_is_refused_by_name(cell: str) -> None:
    with pytest.raises(NameRefused, match="1 to 16 of a-z"):
        Names(cell)


def test_all_names_begin_with_the_cells() -> None:
    names = Names("eu-2")
    assert names.tables == ("stepwell-eu-2-exec", "stepwell-eu-2-timer", "stepwell-eu-2-ctl", "stepwell-eu-2-vis")
    assert (names.timer_queue, names.failure_queue) == ("stepwell-eu-2-timers", "stepwell-eu-2-feed-failures")
    assert (
        Names("a" * 16).bucket("123456789012", "ap-southeast-2") == f"stepwell-{'a' * 16}-123456789012-ap-southeast-2"
    )


def test_a_task_queues_name_is_hashed_and_fits() -> None:
    names = Names("a" * 16)
    queue = names.task_queue("n" * 200, "日本語/" * 100, "act", 999, "build/1")
    assert len(queue) <= 80 and re.fullmatch(r"[A-Za-z0-9_-]+", queue)


def test_task_queues_that_differ_have_names_that_differ() -> None:
    names = Names()
    asked = [("a", "bc"), ("ab", "c"), ("a", "b", "act", 0, "c"), ("a", "b", "act", 0, ""), ("a", "b", "wft", 0, "")]
    asked += [("a", "b", "act", 1, "")]
    made = {names.task_queue(*(of if len(of) > 2 else (*of, "act"))) for of in asked}  # type: ignore[arg-type]
    assert len(made) == len(asked)


def test_no_two_namespaces_share_the_tag_by_which_policies_tell_them_apart() -> None:
    namespaces = [
        "a",
        "a_b",
        "a☃b",
        "a\u2603\u2603b",
        "A",
        "a b",
        "a b ",
        "x" * 256,
        "x" * 257,
        "x" * 258,
        "ns.team/one",
    ]
    tags = [namespace_tag(namespace) for namespace in namespaces]
    tags.append(namespace_tag(tags[2]))  # one that is called as another is tagged
    assert len(set(tags)) == len(tags) and all(len(tag) <= 256 for tag in tags)
    assert namespace_tag("ns.team/one") == "ns.team/one"
