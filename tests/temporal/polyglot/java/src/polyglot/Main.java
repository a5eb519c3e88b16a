package polyglot;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.temporal.client.WorkflowClient;
import io.temporal.serviceclient.WorkflowServiceStubs;
import io.temporal.serviceclient.WorkflowServiceStubsOptions;
import io.temporal.worker.Worker;
import io.temporal.worker.WorkerFactory;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Main HOST:PORT runs each step, and says of each on a line of JSON how it went. */
public final class Main {
  private static final long STEP_LIMIT = 60;

  record Told(String step, boolean passed, String reason) {}

  public static void main(String[] arguments) throws JsonProcessingException {
    var options = WorkflowServiceStubsOptions.newBuilder().setTarget(arguments[0]).build();
    var service = WorkflowServiceStubs.newConnectedServiceStubs(options, Duration.ofSeconds(30));
    WorkflowClient client = WorkflowClient.newInstance(service);
    Steps steps = new Steps(client);
    WorkerFactory factory = WorkerFactory.newInstance(client);
    Worker worker = factory.newWorker(steps.taskQueue);
    worker.registerWorkflowImplementationTypes(Workflows.ALL);
    worker.registerActivitiesImplementations(new Activities.Carried());
    factory.start();
    for (var step : steps.all().entrySet()) {
      String reason = reasonOf(step.getValue());
      var told = new Told(step.getKey(), reason.isEmpty(), reason);
      System.out.println(new ObjectMapper().writeValueAsString(told));
    }
    factory.shutdown();
    factory.awaitTermination(5, TimeUnit.SECONDS);
    System.exit(0); // also where a step that took too long still waits
  }

  /** Empty when the step has passed. */
  private static String reasonOf(Steps.Step step) {
    ExecutorService thread = Executors.newSingleThreadExecutor();
    try {
      thread.submit(() -> { step.run(); return null; }).get(STEP_LIMIT, TimeUnit.SECONDS);
      return "";
    } catch (ExecutionException failed) {
      return chain(failed.getCause());
    } catch (TimeoutException late) {
      return "has not ended in " + STEP_LIMIT + " s";
    } catch (InterruptedException interrupted) {
      return "was interrupted";
    } finally {
      thread.shutdownNow();
    }
  }

  private static String chain(Throwable error) {
    return error.getCause() == null ? error.toString() : error + ": " + chain(error.getCause());
  }
}
