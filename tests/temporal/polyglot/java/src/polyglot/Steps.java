package polyglot;

import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowExecutionDescription;
import io.temporal.client.WorkflowOptions;
import io.temporal.client.WorkflowQueryException;
import io.temporal.client.WorkflowStub;
import io.temporal.client.WorkflowUpdateException;
import io.temporal.client.WorkflowUpdateStage;
import io.temporal.failure.ApplicationFailure;
import io.temporal.worker.Worker;
import io.temporal.worker.WorkerFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import polyglot.Activities.Refusal;
import polyglot.Activities.Span;
import polyglot.Workflows.Called;
import polyglot.Workflows.Children;
import polyglot.Workflows.Waited;

/** The steps of a run share a client and a task queue; the last one replays what the others started. */
final class Steps {
  interface Step {
    void run() throws Exception;
  }

  final String taskQueue = "java-" + UUID.randomUUID();
  private final WorkflowClient client;
  private final List<String> started = new ArrayList<>();

  Steps(WorkflowClient client) {
    this.client = client;
  }

  /** In the order in which they run. */
  Map<String, Step> all() {
    Map<String, Step> steps = new LinkedHashMap<>();
    steps.put("activity", this::activity);
    steps.put("timer", this::timer);
    steps.put("signal", this::signal);
    steps.put("query", this::query);
    steps.put("update", this::update);
    steps.put("child", this::child);
    steps.put("continue-as-new", this::continueAsNew);
    steps.put("replay", this::replay);
    return steps;
  }

  private WorkflowStub start(String type, Object... arguments) {
    String id = type + "-" + UUID.randomUUID();
    WorkflowOptions options = WorkflowOptions.newBuilder().setWorkflowId(id).setTaskQueue(taskQueue).build();
    WorkflowStub stub = client.newUntypedWorkflowStub(type, options);
    stub.start(arguments);
    started.add(id);
    return stub;
  }

  private void activity() {
    var counted = new Span(9, 10);
    var refusal = new Refusal("Java", List.of(4, 2));
    var expected = new Called("Hello, Ada, at attempt 2", counted, "beside Ada", "Refused: no such thing", refusal);
    equal("the result", start("ActivityStep", "Ada").getResult(Called.class), expected);
  }

  private void timer() {
    Waited waited = start("TimerStep").getResult(Waited.class);
    if (waited.elapsed() < 290) throw new AssertionError("the timer of 300 ms fired after " + waited.elapsed());
    equal("the version and the side effect", waited, new Waited(waited.elapsed(), 2, 7));
  }

  private void signal() {
    WorkflowStub stub = start("SignalStep");
    stub.signal("approve", "Ada");
    stub.signal("approve", "Grace");
    equal("the result", stub.getResult(List.class), List.of("Ada", "Grace"));
  }

  private void query() {
    WorkflowStub stub = start("QueryStep");
    equal("the answer", stub.query("state", String.class, "is "), "is waiting");
    stub.signal("approve", "Ada");
    equal("the result", stub.getResult(String.class), "approved");
    equal("the answer", stub.query("state", String.class, "was "), "was approved");
    try {
      stub.query("nothing", String.class);
    } catch (WorkflowQueryException expected) {
      return;
    }
    throw new AssertionError("a query that the workflow does not have was answered");
  }

  private void update() throws Exception {
    WorkflowStub stub = start("UpdateStep");
    equal("the update's result", stub.update("add", Integer.class, 4), 4);
    try {
      stub.update("add", Integer.class, -1);
      throw new AssertionError("an update that its validator refuses was carried out");
    } catch (WorkflowUpdateException rejected) {
      if (!(rejected.getCause() instanceof ApplicationFailure cause)) throw rejected;
      // of what a validator throws, the SDK keeps the message and not the type
      equal("the refusal", cause.getOriginalMessage(), "less than nothing");
    }
    var accepted = stub.startUpdate("add", WorkflowUpdateStage.ACCEPTED, Integer.class, 6);
    equal("the update's result", accepted.getResultAsync().get(), 10);
    equal("the result", stub.getResult(Integer.class), 10);
  }

  private void child() {
    equal("the result", start("ChildStep").getResult(Children.class), new Children(42, "Negative"));
  }

  private void continueAsNew() {
    WorkflowStub stub = start("Again", 3, 0);
    String first = stub.getExecution().getRunId();
    equal("the result", stub.getResult(Integer.class), 6);
    String id = stub.getExecution().getWorkflowId();
    WorkflowExecutionDescription last = client.newUntypedWorkflowStub(id).describe();
    if (last.getExecution().getRunId().equals(first)) throw new AssertionError("the last run is the first one");
    equal("the status", last.getStatus(), WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED);
  }

  /** Exports each history as JSON, and replays what is read from there: of a chain the last run. */
  private void replay() throws Exception {
    WorkerFactory factory = WorkerFactory.newInstance(client);
    Worker replayer = factory.newWorker(taskQueue);
    replayer.registerWorkflowImplementationTypes(Workflows.ALL);
    try {
      for (String id : started) replayer.replayWorkflowExecution(client.fetchHistory(id).toJson(false));
    } finally {
      factory.shutdownNow();
    }
  }

  private static void equal(String what, Object got, Object expected) {
    if (!Objects.equals(got, expected)) {
      throw new AssertionError(what + ": expected " + expected + ", got " + got);
    }
  }
}
