// A workflow for each step.

import {
  ActivityFailure,
  ApplicationFailure,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  defineUpdate,
  executeChild,
  proxyActivities,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type * as activities from './activities';

const { greet, refuse } = proxyActivities<typeof activities>({
  startToCloseTimeout: '30s',
  retry: { initialInterval: '50ms' },
});

export const approve = defineSignal<[string]>('approve');
export const state = defineQuery<string, [string]>('state');
export const add = defineUpdate<number, [number]>('add');

export async function activity(name: string): Promise<string[]> {
  const greeting = await greet(name);
  try {
    await refuse('no such thing');
  } catch (error) {
    if (!(error instanceof ActivityFailure) || !(error.cause instanceof ApplicationFailure)) throw error;
    return [greeting, `${error.cause.type}: ${error.cause.message}`, JSON.stringify(error.cause.details)];
  }
  throw ApplicationFailure.nonRetryable('the refusal did not arrive');
}

export async function timer(): Promise<number> {
  const before = Date.now();
  await sleep('300ms');
  return Date.now() - before;
}

export async function signal(): Promise<string[]> {
  const names: string[] = [];
  setHandler(approve, (name) => {
    names.push(name);
  });
  await condition(() => names.length === 2);
  return names;
}

/** Also the workflow that is asked after its end. */
export async function query(): Promise<string> {
  let phase = 'waiting';
  setHandler(state, (prefix) => `${prefix}${phase}`);
  setHandler(approve, () => {
    phase = 'approved';
  });
  await condition(() => phase === 'approved');
  return phase;
}

export async function update(): Promise<number> {
  let total = 0;
  setHandler(
    add,
    async (amount) => {
      total += amount;
      await sleep('10ms');
      return total;
    },
    {
      validator: (amount) => {
        if (amount < 0) throw ApplicationFailure.nonRetryable('less than nothing', 'Negative');
      },
    },
  );
  await condition(() => total >= 10);
  await sleep('10ms');
  return total;
}

export async function twice(value: number): Promise<number> {
  if (value < 0) throw ApplicationFailure.nonRetryable('less than nothing', 'Negative');
  return 2 * value;
}

export async function child(): Promise<(number | string)[]> {
  const doubled = await executeChild(twice, { args: [21] });
  const failure = await executeChild(twice, { args: [-1] }).then(
    () => 'completed',
    (error) => `${error.cause?.type}`,
  );
  return [doubled, failure];
}

export async function again(left: number, total: number): Promise<number> {
  if (left === 0) return total;
  await sleep('10ms');
  return continueAsNew<typeof again>(left - 1, total + left);
}
