//! How pages for a browser begin and what they look like; they load nothing.

const STYLE: &str = "\
<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n\
:root { color-scheme: light dark; --text: #15181b; --dim: #5b6570; --line: #d5dade; --hot: #d66027; --back: #fff; }\n\
@media (prefers-color-scheme: dark) { :root { --text: #e6eaee; --dim: #9aa5b1; --line: #343c44; --back: #15181b; } }\n\
body { font: 14px system-ui, sans-serif; margin: 24px; color: var(--text); background: var(--back); }\n\
h1 { font-size: 20px; margin: 0 0 .2em; overflow-wrap: anywhere; } p { color: var(--dim); margin: .3em 0; }\n\
summary { font-size: 16px; margin: 1.5em 0 .5em; cursor: pointer; overflow-wrap: anywhere; }\n\
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n\
th { font-weight: 500; color: var(--dim); text-align: right; border-bottom: 1px solid var(--line); }\n\
th, td { padding: 1px 10px; white-space: pre; } td { text-align: right; }\n\
.left { text-align: left; } .dim { color: var(--dim); } code { font-size: 13px; } a { color: inherit; }\n\
tr:target td { outline: 1px solid var(--hot); }\n\
td[style] { background: color-mix(in srgb, var(--hot) calc(var(--share) * .55), transparent); }\n\
@media print { details { break-inside: auto; } tr { break-inside: avoid; } }\n\
";

/// The beginning of a page up to its body; `title` is escaped, `style` comes after the rules of all pages.
pub(crate) fn begin(title: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<title>{title}</title>\n{STYLE}{style}</style>\n</head>\n<body>\n"
    )
}
