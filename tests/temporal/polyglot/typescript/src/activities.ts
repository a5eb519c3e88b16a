// The activities of all steps, and of the Python workflow of the mixed run.

import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';

/** Fails at its first attempt, so that what comes back was retried by the server. */
export async function greet(name: string): Promise<string> {
  const { attempt } = Context.current().info;
  if (attempt === 1) throw ApplicationFailure.retryable('not yet', 'NotYet');
  return `Hello, ${name}, at attempt ${attempt}`;
}

export async function refuse(reason: string): Promise<never> {
  throw ApplicationFailure.nonRetryable(reason, 'Refused', { by: 'TypeScript', codes: [4, 2] });
}

/** Goes on where the heartbeat of its first attempt had come to. */
export async function countUp(to: number): Promise<{ from: number; to: number }> {
  const context = Context.current();
  const from = (context.info.heartbeatDetails as number | undefined) ?? 0;
  if (context.info.attempt === 1) {
    context.heartbeat(to - 1);
    throw ApplicationFailure.retryable('half way');
  }
  return { from, to };
}
