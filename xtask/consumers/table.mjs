// Reads our CSV: what the other outputs are compared with.

/** Rows of a CSV text as arrays of fields. */
function parse(text) {
  const rows = [];
  let row = [];
  let field = '';
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const c = text[at];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[at + 1] === '"') { field += '"'; at += 1; } else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ',') { row.push(field); field = ''; } else if (c === '\n') {
      row.push(field);
      rows.push(row);
      row = [];
      field = '';
    } else field += c;
  }
  return rows;
}

/** Figures of a trace from its CSV. */
export function spansOf(text) {
  const [head, ...rows] = parse(text);
  const column = (start) => head.findIndex((name) => name.startsWith(start));
  const [kind, track, lane, length, own, depth] = ['kind', 'track', 'lane', 'duration_', 'self_', 'depth'].map(column);
  const of = (wanted) => rows.filter((row) => row[kind] === wanted);
  const spans = of('span');
  const selfByTrack = {};
  for (const row of spans) selfByTrack[row[track]] = (selfByTrack[row[track]] ?? 0) + Number(row[own]);
  const sum = spans.reduce((total, row) => total + Number(row[length]), 0);
  return {
    spans: spans.length,
    instants: of('instant').length,
    flows: Math.min(of('flow-out').length, of('flow-in').length),
    flowEnds: of('flow-out').length + of('flow-in').length,
    nanoseconds: sum,
    depth: [...spans, ...of('instant')].reduce((most, row) => Math.max(most, Number(row[depth])), -1),
    tracks: new Set(rows.map((row) => row[track])).size,
    tracksWithSpans: new Set(spans.map((row) => row[track])).size,
    hasLanes: rows.some((row) => row[lane] !== '0'),
    selfByTrack,
  };
}
