package polyglot;

import io.temporal.activity.ActivityOptions;
import io.temporal.activity.LocalActivityOptions;
import io.temporal.common.RetryOptions;
import io.temporal.failure.ActivityFailure;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.ChildWorkflowFailure;
import io.temporal.workflow.QueryMethod;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.UpdateMethod;
import io.temporal.workflow.UpdateValidatorMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import polyglot.Activities.Refusal;
import polyglot.Activities.Span;

/** A workflow for each step, and those that they start. */
public interface Workflows {
  Class<?>[] ALL = {
    ActivityRun.class, TimerRun.class, SignalRun.class, QueryRun.class,
    UpdateRun.class, ChildRun.class, TwiceRun.class, AgainRun.class
  };
  Duration PAUSE = Duration.ofMillis(10);

  record Called(String greeting, Span counted, String beside, String refused, Refusal refusal) {}

  record Waited(long elapsed, int version, int drawn) {}

  record Children(int doubled, String failure) {}

  @WorkflowInterface
  interface ActivityStep {
    @WorkflowMethod
    Called run(String name);
  }

  @WorkflowInterface
  interface TimerStep {
    @WorkflowMethod
    Waited run();
  }

  @WorkflowInterface
  interface SignalStep {
    @WorkflowMethod
    List<String> run();

    @SignalMethod
    void approve(String name);
  }

  /** Is also asked after its end. */
  @WorkflowInterface
  interface QueryStep {
    @WorkflowMethod
    String run();

    @QueryMethod
    String state(String prefix);

    @SignalMethod
    void approve(String name);
  }

  @WorkflowInterface
  interface UpdateStep {
    @WorkflowMethod
    int run();

    @UpdateMethod
    int add(int amount);

    @UpdateValidatorMethod(updateName = "add")
    void validateAdd(int amount);
  }

  @WorkflowInterface
  interface ChildStep {
    @WorkflowMethod
    Children run();
  }

  @WorkflowInterface
  interface Twice {
    @WorkflowMethod
    int run(int value);
  }

  @WorkflowInterface
  interface Again {
    @WorkflowMethod
    int run(int left, int total);
  }

  class ActivityRun implements ActivityStep {
    private final Activities called =
        Workflow.newActivityStub(
            Activities.class,
            ActivityOptions.newBuilder()
                .setStartToCloseTimeout(Duration.ofSeconds(30))
                .setRetryOptions(RetryOptions.newBuilder().setInitialInterval(Duration.ofMillis(50)).build())
                .build());
    private final Activities local =
        Workflow.newLocalActivityStub(
            Activities.class,
            LocalActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(5)).build());

    @Override
    public Called run(String name) {
      String greeting = called.greet(name);
      Span counted = called.countUp(10);
      String beside = local.beside(name);
      try {
        called.refuse("no such thing");
      } catch (ActivityFailure failure) {
        if (!(failure.getCause() instanceof ApplicationFailure cause)) throw failure;
        String refused = cause.getType() + ": " + cause.getOriginalMessage();
        return new Called(greeting, counted, beside, refused, cause.getDetails().get(Refusal.class));
      }
      throw ApplicationFailure.newNonRetryableFailure("the refusal did not arrive", "Missing");
    }
  }

  /** Also marks what its replay must find again: a changed piece of code, and a side effect. */
  class TimerRun implements TimerStep {
    @Override
    public Waited run() {
      long before = Workflow.currentTimeMillis();
      int version = Workflow.getVersion("longer", Workflow.DEFAULT_VERSION, 2);
      Workflow.sleep(Duration.ofMillis(300));
      long elapsed = Workflow.currentTimeMillis() - before;
      return new Waited(elapsed, version, Workflow.sideEffect(Integer.class, () -> 7));
    }
  }

  class SignalRun implements SignalStep {
    private final List<String> names = new ArrayList<>();

    @Override
    public List<String> run() {
      Workflow.await(() -> names.size() == 2);
      return names;
    }

    @Override
    public void approve(String name) {
      names.add(name);
    }
  }

  class QueryRun implements QueryStep {
    private String phase = "waiting";

    @Override
    public String run() {
      Workflow.await(() -> phase.equals("approved"));
      return phase;
    }

    @Override
    public String state(String prefix) {
      return prefix + phase;
    }

    @Override
    public void approve(String name) {
      phase = "approved";
    }
  }

  class UpdateRun implements UpdateStep {
    private int total;

    @Override
    public int run() {
      Workflow.await(() -> total >= 10 && Workflow.isEveryHandlerFinished());
      return total;
    }

    @Override
    public int add(int amount) {
      total += amount;
      Workflow.sleep(PAUSE);
      return total;
    }

    @Override
    public void validateAdd(int amount) {
      notNegative(amount);
    }
  }

  class ChildRun implements ChildStep {
    @Override
    public Children run() {
      int doubled = Workflow.newChildWorkflowStub(Twice.class).run(21);
      try {
        Workflow.newChildWorkflowStub(Twice.class).run(-1);
      } catch (ChildWorkflowFailure failure) {
        if (!(failure.getCause() instanceof ApplicationFailure cause)) throw failure;
        return new Children(doubled, cause.getType());
      }
      throw ApplicationFailure.newNonRetryableFailure("the child's failure did not arrive", "Missing");
    }
  }

  class TwiceRun implements Twice {
    @Override
    public int run(int value) {
      notNegative(value);
      return 2 * value;
    }
  }

  class AgainRun implements Again {
    @Override
    public int run(int left, int total) {
      if (left == 0) return total;
      Workflow.sleep(PAUSE);
      return Workflow.newContinueAsNewStub(Again.class).run(left - 1, total + left);
    }
  }

  static void notNegative(int value) {
    if (value < 0) throw ApplicationFailure.newNonRetryableFailure("less than nothing", "Negative");
  }
}
