// Loads profiles into Mozilla's profiler-cli.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What profiler-cli says of a profile: its summary, its threads and the call tree of the first. */
export async function firefox(node, cli, file) {
  const ask = async (...words) => (await run(node, [cli, ...words], { timeout: 120000, maxBuffer: 1 << 26 })).stdout;
  await ask('load', file);
  try {
    return {
      info: await ask('profile', 'info'),
      threads: await ask('thread', 'list'),
      functions: await ask('thread', 'functions'),
      markers: await ask('thread', 'markers'),
    };
  } finally {
    await ask('stop').catch(() => {});
  }
}
