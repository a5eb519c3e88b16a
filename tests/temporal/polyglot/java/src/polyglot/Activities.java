package polyglot;

import io.temporal.activity.Activity;
import io.temporal.activity.ActivityExecutionContext;
import io.temporal.activity.ActivityInterface;
import io.temporal.failure.ApplicationFailure;
import java.util.List;

/** The activities of the steps. */
@ActivityInterface
public interface Activities {
  record Span(int from, int to) {}

  record Refusal(String by, List<Integer> codes) {}

  /** Fails at its first attempt, so that what comes back was retried by the server. */
  String greet(String name);

  void refuse(String reason);

  /** Goes on where the heartbeat of its first attempt had come to. */
  Span countUp(int to);

  /** Is carried out as a local activity. */
  String beside(String name);

  class Carried implements Activities {
    @Override
    public String greet(String name) {
      int attempt = Activity.getExecutionContext().getInfo().getAttempt();
      if (attempt == 1) throw ApplicationFailure.newFailure("not yet", "NotYet");
      return "Hello, " + name + ", at attempt " + attempt;
    }

    @Override
    public void refuse(String reason) {
      var details = new Refusal("Java", List.of(4, 2));
      throw ApplicationFailure.newNonRetryableFailure(reason, "Refused", details);
    }

    @Override
    public Span countUp(int to) {
      ActivityExecutionContext context = Activity.getExecutionContext();
      int from = context.getHeartbeatDetails(Integer.class).orElse(0);
      if (context.getInfo().getAttempt() == 1) {
        context.heartbeat(to - 1);
        throw ApplicationFailure.newFailure("half way", "HalfWay");
      }
      return new Span(from, to);
    }

    @Override
    public String beside(String name) {
      return "beside " + name;
    }
  }
}
