"""Updates in the history of a run that a reset made: admitted by an event, accepted without their request."""

from stepwell import workflow
from stepwell.api import events as ev
from stepwell.api.updates import DeliveredUpdate, UpdateInput, UpdateMeta, UpdateRequest

from tests.support.histories import Driver, payloads


def test_an_update_that_a_reset_took_over_is_replayed_from_the_event_of_its_own() -> None:
    """It is admitted and accepted within one workflow task's events."""

    @workflow.defn
    class Takes:
        def __init__(self) -> None:
            self.order: list[str] = []

        @workflow.signal
        def note(self, text: str) -> None:
            self.order.append(text)

        @workflow.update
        def change(self, text: str) -> None:
            self.order.append(text)

        @workflow.query
        def seen(self) -> list[str]:
            return self.order

        @workflow.run
        async def run(self) -> None:
            await workflow.wait_condition(lambda: len(self.order) > 9)

    d = Driver(Takes)
    d.task()
    request = UpdateRequest(meta=UpdateMeta(update_id="u1"), input=UpdateInput(name="change", args=payloads("u1")))
    d.history.signal("note", "before")
    admitted = d.history.add(ev.WorkflowExecutionUpdateAdmitted(request=request))
    d.history.signal("note", "behind")
    d.shown.append(DeliveredUpdate(request=request, sequencing_event_id=admitted))
    d.task()
    accepted = [e.attributes for e in d.history.events if isinstance(e.attributes, ev.WorkflowExecutionUpdateAccepted)]
    assert [attributes.accepted_request for attributes in accepted] == [None]
    live = d.run.query("seen")
    assert live == payloads(["before", "u1", "behind"])
    assert d.replay().query("seen") == live
