"""What is a workflow, and what is refused at the decorator."""

import pytest
from stepwell import workflow
from stepwell.workflow.definition import (
    WorkflowDefinition,
    query_reference,
    signal_reference,
    workflow_reference,
)


@workflow.defn(name="order")
class Order:
    @workflow.init
    def __init__(self, number: int) -> None:
        self.number = number

    @workflow.run
    async def run(self, number: int) -> str:
        return str(number)

    @workflow.signal(name="ship", description="out of the door")
    async def shipped(self, day: str) -> None: ...

    @workflow.query
    def state(self) -> str:
        return ""


@workflow.defn
async def plain(number: int) -> str:
    return ""


def test_class_style() -> None:
    definition = WorkflowDefinition.must_of(Order)
    assert (definition.name, definition.init_takes_arguments) == ("order", True)
    assert definition.signals["ship"].is_async and definition.signals["ship"].description == "out of the door"
    assert list(definition.queries) == ["state"]
    assert WorkflowDefinition.of(Order.run) is definition
    assert definition.signature.types == (int,) and definition.signature.result_type is str


def test_function_style() -> None:
    definition = WorkflowDefinition.must_of(plain)
    assert (definition.name, definition.cls, definition.signature.names) == ("plain", None, ("number",))


def test_references() -> None:
    assert workflow_reference(Order.run)[0] == workflow_reference(Order)[0] == "order"
    assert workflow_reference("other")[1].variadic
    assert signal_reference(Order.shipped)[0] == "ship"
    assert query_reference("anything")[0] == "anything"
    for reference in (workflow_reference, signal_reference, query_reference):
        with pytest.raises(ValueError, match="decorate it with @workflow"):
            reference(print)


def test_subclasses_need_a_decorator_of_their_own() -> None:
    class Child(Order):
        pass

    with pytest.raises(ValueError, match=r"no @workflow.defn of its own"):
        WorkflowDefinition.must_of(Child)

    @workflow.defn
    class Grandchild(Order):
        @workflow.run
        async def run(self, number: int) -> str:
            return "again"

    definition = WorkflowDefinition.must_of(Grandchild)
    assert (definition.name, list(definition.signals)) == ("Grandchild", ["ship"])
    assert WorkflowDefinition.must_of(Order.run).name == "order"


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"has 0 methods with @workflow.run"):

        @workflow.defn
        class NoRun: ...

    with pytest.raises(ValueError, match="must be 'async def'"):

        @workflow.run
        def sync_run(self: object) -> None: ...

    with pytest.raises(ValueError, match="a class or an 'async def' function"):

        @workflow.defn
        def sync_function() -> None: ...

    with pytest.raises(ValueError, match="must be 'def'"):

        @workflow.query
        async def waits(self: object) -> None: ...

    with pytest.raises(ValueError, match="name must not be empty"):
        workflow.defn(name="")(plain)


def test_refusals_of_classes() -> None:
    with pytest.raises(ValueError, match=r"decorate it with @workflow.init"):

        @workflow.defn
        class Arguments:
            def __init__(self, number: int) -> None: ...

            @workflow.run
            async def run(self, number: int) -> None: ...

    with pytest.raises(ValueError, match="must take the same parameters as run"):

        @workflow.defn
        class OtherArguments:
            @workflow.init
            def __init__(self, other: int) -> None: ...

            @workflow.run
            async def run(self, number: int) -> None: ...

    with pytest.raises(ValueError, match=r"overrides a method with @workflow.signal; repeat the decorator"):

        @workflow.defn
        class Overrides(Order):
            async def shipped(self, day: str) -> None: ...

            @workflow.run
            async def run(self, number: int) -> str:
                return ""

    with pytest.raises(ValueError, match="two handlers named 'same'"):

        @workflow.defn
        class Twice:
            @workflow.signal(name="same")
            def one(self) -> None: ...

            @workflow.signal(name="same")
            def two(self) -> None: ...

            @workflow.run
            async def run(self) -> None: ...
