import { expect, test } from "vitest";
import { linesWith, readSection } from "../../src/sections";

test("lines lead to places where they have one", () => {
  const { title, blocks } = readSection({
    title: "Explain",
    blocks: [{ kind: "lines", title: "", lines: ["error: x", "  at record 12"], links: [null, { start: 12, end: 13, track: null }] }],
  });
  expect(title).toBe("Explain");
  expect(blocks).toEqual([
    { kind: "lines", title: "", lines: [{ text: "error: x", link: null }, { text: "  at record 12", link: { start: 12, end: 13, track: null } }] },
  ]);
});

test("lines without links, and blocks of a later server, are read", () => {
  const { blocks } = readSection({ blocks: [{ kind: "lines", lines: ["a"] }, { kind: "hologram" }] });
  expect(blocks).toEqual([{ kind: "lines", title: "", lines: [{ text: "a", link: null }] }, { kind: "unknown", name: "hologram" }]);
});

test("lines are filtered by all words in any case", () => {
  const lines = ["GL_BLEND = GL_FALSE", "GL_DEPTH_TEST = GL_TRUE", "gl_blend_color"].map((text) => ({ text, link: null }));
  expect(linesWith(lines, " gl_blend ", 10).shown.map((line) => line.text)).toEqual(["GL_BLEND = GL_FALSE", "gl_blend_color"]);
  expect(linesWith(lines, "blend false", 10).count).toBe(1);
  expect(linesWith(lines, "", 2)).toEqual({ shown: lines.slice(0, 2), count: 3 });
  expect(linesWith(lines, "nothing", 2)).toEqual({ shown: [], count: 0 });
});

test("lines of source have figures, or are only around those that have", () => {
  const { blocks } = readSection({
    blocks: [{ kind: "source", title: "a.c", columns: ["reads"], lines: [{ number: 3, text: "x", values: [7] }, { number: null }, { number: 9, text: "y", values: [] }] }],
  });
  const lines = [{ number: 3, text: "x", values: [7] }, { number: null, text: "", values: [] }, { number: 9, text: "y", values: [] }];
  expect(blocks).toEqual([{ kind: "source", title: "a.c", columns: ["reads"], lines }]);
});

test("pictures come from the page's own server only", () => {
  const link = { start: 1, end: 2, track: null };
  const pictures = [
    { source: "api/picture?file=0&frame=12", text: "frame 12", link },
    { source: "https://example.com/api/picture?file=0&frame=1", text: "elsewhere", link },
    { source: "api/picture?file=0&frame=1#x", text: "odd" },
    { source: "data:image/svg+xml;base64,AAAA", text: "not a picture of dots" },
    { source: "data:image/png;base64,AAAA", text: "inside", link: null },
  ];
  const { blocks } = readSection({ blocks: [{ kind: "pictures", title: "Frames", making: true, pictures }] });
  expect(blocks).toEqual([{ kind: "pictures", title: "Frames", making: true, pictures: [{ source: "api/picture?file=0&frame=12", text: "frame 12", link }, { source: "data:image/png;base64,AAAA", text: "inside", link: null }] }]);
});
