// Pictures of pages for the book: `cargo xtask pictures` says which, as JSON on standard input.
//
//   [{ "out": "view.png", "view": ["examples/…"], "fragment": "start=…&end=…", "width": 1280, "height": 520 },
//    { "out": "report.png", "page": "target/report.html", … }]

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { close, launch, open, PROGRAM, ROOT, settled, start } from "./common.mjs";

async function picture(browser, { out, view, page: file, fragment, width, height }) {
  const viewport = { width, height };
  if (file) {
    const page = await browser.newPage({ viewport, colorScheme: "light" });
    await page.goto(pathToFileURL(join(ROOT, file)).href);
    await page.screenshot({ path: out });
    return page.close();
  }
  const server = await start(PROGRAM, ["view", "--no-open", ...view]);
  const { page, faults } = await open(browser, `${server.url}#${fragment}`, { viewport });
  // Tables of the panel come with answers of their own.
  await page.waitForLoadState("networkidle");
  await settled(page);
  if (faults.length > 0) throw new Error(faults.join("; "));
  await page.screenshot({ path: out });
  await page.close();
  server.stop();
}

const browser = await launch();
try {
  for (const wanted of JSON.parse(readFileSync(0, "utf8"))) {
    await picture(browser, wanted);
    console.log(wanted.out);
  }
} catch (error) {
  console.error(`failed: ${error.message}`);
  process.exitCode = 1;
} finally {
  await close(browser);
}
process.exit();
