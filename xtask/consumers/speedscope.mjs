// Opens profiles in speedscope and counts what it drew from them.

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';

import { serve } from './serve.mjs';

/** Starts speedscope once; `open(file)` gives the texts it shows, or throws what it complained of. */
export async function speedscope(browser, folder) {
  const site = await serve(folder);
  return {
    async open(file, screenshot) {
      const page = await browser.newPage({ viewport: { width: 1400, height: 700 } });
      const said = [];
      page.on('console', (message) => said.push(message.text()));
      page.on('pageerror', (error) => said.push(String(error)));
      page.on('dialog', (dialog) => { said.push(dialog.message()); dialog.dismiss(); });
      try {
        await page.goto(site.url + '/index.html', { waitUntil: 'load' });
        await page.setInputFiles('input[type=file]', { name: basename(file), mimeType: 'application/json', buffer: await readFile(file) });
        // The list of views appears once a profile is shown.
        await page.waitForFunction(() => document.body.innerText.includes('Left Heavy'), null, { timeout: 60000 })
          .catch(() => { throw new Error(`speedscope shows nothing: ${said.join(' | ') || 'and says nothing'}`); });
        await page.waitForTimeout(500);
        if (screenshot) await page.screenshot({ path: screenshot });
        const text = await page.evaluate(() => document.body.innerText);
        // The sandwich view lists every function with its exact times.
        await page.getByText('Sandwich').first().click();
        await page.waitForTimeout(500);
        const table = await page.evaluate(() => document.body.innerText);
        return { said, text, table };
      } finally {
        await page.close();
      }
    },
    close: () => site.close(),
  };
}
