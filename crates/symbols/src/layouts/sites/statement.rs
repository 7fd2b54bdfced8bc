//! What a statement in C or C++ says about the memory it allocates.
//!
//! No parser of the language: words and signs, and the few forms that allocations have. What is not understood says
//! nothing.

/// Most lines of a statement before and after the line of its call.
const LINES_AROUND: usize = 12;

/// Most words and signs of a statement.
const TOKENS_MAX: usize = 2048;

/// What a statement says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// `new T`, `new T[n]`.
    New { name: String, is_array: bool },
    /// `sizeof(T)`, `sizeof *x`.
    SizeOf { operand: Expression, part: Part },
    /// `(T *)call()`, `static_cast<T *>(call())`: the type, with stars.
    Cast(String),
    /// `x = call()`.
    Assigned(Expression),
    /// `return call()`.
    Returned,
    /// A product is an argument: `n * 8`.
    Product,
    /// The last argument of a macro or function: `new_vector(n, T)`.
    LastArgument(String),
}

/// How a size is part of the bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The only argument of a call: all of them.
    All,
    /// May be multiplied: `n * sizeof(T)`, `calloc(n, sizeof(T))`.
    Factor,
    /// Something is added: `sizeof(T) + n`.
    Head,
}

/// An expression as far as it is understood, or the name of a type: stars in front, a name, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Expression {
    /// True for the name of a type after `struct` and its like.
    pub(super) is_type: bool,
    /// How many stars precede it.
    pub(super) stars: usize,
    /// The name of a variable or a type.
    pub(super) name: String,
    /// Steps from there.
    pub(super) steps: Vec<Step>,
    /// Stars behind a type's name.
    pub(super) pointers: usize,
}

/// From a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// `.name` or `->name`.
    Member(String),
    /// `[…]`.
    Element,
}

/// The lines of a file without comments, and without the contents of strings.
pub(super) fn code_lines(text: &str) -> Vec<String> {
    #[derive(PartialEq)]
    enum In {
        Code,
        Comment,
        Text(char),
    }
    let mut state = In::Code;
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut code = String::with_capacity(line.len());
        let mut letters = line.chars().peekable();
        // Texts do not go beyond their line, except where it is continued.
        if matches!(state, In::Text(_)) {
            state = In::Code;
        }
        while let Some(letter) = letters.next() {
            match (&state, letter) {
                (In::Code, '/') if letters.peek() == Some(&'/') => break,
                (In::Code, '/') if letters.peek() == Some(&'*') => {
                    letters.next();
                    state = In::Comment;
                    code.push(' ');
                }
                (In::Comment, '*') if letters.peek() == Some(&'/') => {
                    letters.next();
                    state = In::Code;
                }
                (In::Comment, _) => {}
                // Not the separator of digits: `1'000`.
                (In::Code, '"' | '\'') if !(letter == '\'' && code.ends_with(|c: char| c.is_ascii_digit())) => {
                    state = In::Text(letter);
                    code.push('"');
                }
                (In::Text(_), '\\') => {
                    letters.next();
                }
                (In::Text(end), _) if *end == letter => {
                    state = In::Code;
                    code.push('"');
                }
                (In::Text(_), _) => {}
                (In::Code, _) => code.push(letter),
            }
        }
        lines.push(code);
    }
    lines
}

/// What the statement with a line, from 1, says.
pub(super) fn claims(lines: &[String], line: u32) -> Vec<Claim> {
    let tokens = statement(lines, line);
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let claim = match tokens.get(at).copied().unwrap_or_default() {
            "new" => new(&tokens, at),
            "sizeof" => size_of(&tokens, at),
            "(" => cast(&tokens, at + 1, ")"),
            "<" if at > 0 && is_cast_word(tokens.get(at - 1)) => cast(&tokens, at + 1, ">"),
            "=" => assigned(&tokens, at),
            "return" => is_call(&tokens, at + 1).then_some(Claim::Returned),
            "*" => is_product(&tokens, at).then_some(Claim::Product),
            "," => last_argument(&tokens, at + 1),
            _ => None,
        };
        found.extend(claim.filter(|claim| !found.contains(claim)).into_iter().collect::<Vec<_>>());
    }
    found
}

/// The words and signs from the end of the statement before to the end of this one.
fn statement(lines: &[String], line: u32) -> Vec<String> {
    let Some(at) = (line as usize).checked_sub(1).filter(|at| *at < lines.len()) else { return Vec::new() };
    let (from, to) = (at.saturating_sub(LINES_AROUND), (at + LINES_AROUND + 1).min(lines.len()));
    let tokens_of = |lines: &[String]| -> Vec<String> {
        // Directives are no part of a statement.
        let lines = lines.iter().filter(|line| !line.trim_start().starts_with('#'));
        lines.flat_map(|line| tokens(line)).take(TOKENS_MAX).collect()
    };
    let is_end = |token: &String| matches!(token.as_str(), ";" | "{" | "}");
    let own = tokens_of(lines.get(at..=at).unwrap_or_default());
    let mut before = tokens_of(lines.get(from..at).unwrap_or_default());
    let begin = before.iter().rposition(is_end).map_or(0, |end| end + 1);
    let mut all = before.split_off(begin);
    let ends = own.last().is_some_and(is_end);
    all.extend(own);
    if !ends {
        let after = tokens_of(lines.get(at + 1..to).unwrap_or_default());
        all.extend(after.into_iter().take_while(|token| !is_end(token)));
    }
    all
}

/// The words and signs of a line.
fn tokens(line: &str) -> Vec<String> {
    const SIGNS: &[&str] =
        &["->", "::", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "|=", "&=", "&&", "||", "++", "--"];
    let mut found = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len());
        let (token, behind) = rest.split_at(if word > 0 { word } else { sign });
        found.push(token.to_owned());
        rest = behind.trim_start();
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

/// True for a word that is a name.
fn is_name(token: &str) -> bool {
    const KEYWORDS: &[&str] =
        &["return", "sizeof", "new", "if", "else", "while", "for", "case", "goto", "delete", "throw", "operator"];
    token.starts_with(|c: char| is_word(c) && !c.is_numeric()) && !KEYWORDS.contains(&token)
}

/// True for the words between a bracket and the name of a type.
fn is_qualifier(token: &str) -> bool {
    matches!(token, "struct" | "class" | "union" | "enum" | "const" | "volatile" | "typename" | "restrict")
}

fn is_cast_word(token: Option<&&str>) -> bool {
    matches!(token, Some(&"static_cast" | &"reinterpret_cast"))
}

/// The name of a type from a token on, with the arguments of its template, and where it ends.
fn type_name(tokens: &[&str], mut at: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    while tokens.get(at).is_some_and(|token| is_qualifier(token)) {
        at += 1;
    }
    if tokens.get(at) == Some(&"::") {
        at += 1;
    }
    loop {
        let token = tokens.get(at).filter(|token| is_name(token))?;
        name.push_str(token);
        at += 1;
        // Numbers have several words: none of them is a record.
        while tokens.get(at).is_some_and(|token| is_name(token)) {
            name.push(' ');
            name.push_str(tokens.get(at)?);
            at += 1;
        }
        if tokens.get(at) == Some(&"<") {
            let end = closing(tokens, at, "<", ">")?;
            name.push_str(&tokens.get(at..=end)?.join(" "));
            at = end + 1;
        }
        if tokens.get(at) != Some(&"::") {
            return Some((name, at));
        }
        name.push_str("::");
        at += 1;
    }
}

/// Where a bracket is closed.
fn closing(tokens: &[&str], open: usize, opens: &str, closes: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if *token == opens {
            depth += 1;
        } else if *token == closes {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at);
            }
        } else if matches!(*token, ";" | "{") {
            return None;
        }
    }
    None
}

fn stars(tokens: &[&str], at: usize) -> usize {
    let is_star = |token: &&&str| matches!(**token, "*" | "const");
    tokens.get(at..).unwrap_or_default().iter().take_while(is_star).filter(|token| **token == "*").count()
}

fn new(tokens: &[&str], at: usize) -> Option<Claim> {
    if at > 0 && tokens.get(at - 1) == Some(&"operator") {
        return None;
    }
    let mut start = at + 1;
    if tokens.get(start) == Some(&"(") {
        start = closing(tokens, start, "(", ")")? + 1;
    }
    let (name, end) = type_name(tokens, start)?;
    let count = stars(tokens, end);
    let is_array = tokens.get(end + count) == Some(&"[");
    Some(Claim::New { name: format!("{name}{}", "*".repeat(count)), is_array })
}

fn size_of(tokens: &[&str], at: usize) -> Option<Claim> {
    let (operand, end) = if tokens.get(at + 1) == Some(&"(") {
        let close = closing(tokens, at + 1, "(", ")")?;
        let (operand, end) = expression(tokens, at + 2)?;
        if end != close {
            return None;
        }
        (operand, close + 1)
    } else {
        expression(tokens, at + 1)?
    };
    let is_alone = at > 0 && tokens.get(at - 1) == Some(&"(") && tokens.get(end) == Some(&")");
    let part = match has_tail(tokens, at, end) {
        true => Part::Head,
        false if is_alone => Part::All,
        false => Part::Factor,
    };
    Some(Claim::SizeOf { operand, part })
}

/// True where something is added to a term: signs in the same argument, outside of brackets.
fn has_tail(tokens: &[&str], begin: usize, end: usize) -> bool {
    let is_sum = |token: &str| matches!(token, "+" | "-");
    let mut depth = 0_i32;
    for token in tokens.get(end..).unwrap_or_default() {
        match *token {
            "(" | "[" => depth += 1,
            ")" | "]" if depth == 0 => break,
            ")" | "]" => depth -= 1,
            "," | ";" if depth == 0 => break,
            sign if depth == 0 && is_sum(sign) => return true,
            _ => {}
        }
    }
    for token in tokens.get(..begin).unwrap_or_default().iter().rev() {
        match *token {
            ")" | "]" => depth += 1,
            "(" | "[" if depth == 0 => break,
            "(" | "[" => depth -= 1,
            "," | ";" | "=" | "return" if depth == 0 => break,
            sign if depth == 0 && is_sum(sign) => return true,
            _ => {}
        }
    }
    false
}

/// True for a star between two values in brackets.
fn is_product(tokens: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let is_value = |token: &&str| token.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '('));
    let starts = before.is_some_and(|token| *token == ")" || (is_value(token) && *token != "(" && *token != "return"));
    let ends = tokens.get(at + 1).is_some_and(is_value);
    let depth = |depth: i32, token: &&str| depth + i32::from(*token == "(") - i32::from(*token == ")");
    starts && ends && tokens.get(..at).unwrap_or_default().iter().fold(0, depth) > 0
}

fn last_argument(tokens: &[&str], at: usize) -> Option<Claim> {
    let (name, end) = type_name(tokens, at)?;
    (tokens.get(end) == Some(&")")).then_some(Claim::LastArgument(name))
}

/// `(T *)` or `<T *>` before a call.
fn cast(tokens: &[&str], at: usize, closes: &str) -> Option<Claim> {
    let (name, end) = type_name(tokens, at)?;
    let count = stars(tokens, end);
    let mut close = end;
    while matches!(tokens.get(close), Some(&"*" | &"const")) {
        close += 1;
    }
    let is_closed = count > 0 && tokens.get(close) == Some(&closes);
    let mut call = close + 1;
    if closes == ">" {
        call += usize::from(tokens.get(call) == Some(&"("));
    }
    (is_closed && is_call(tokens, call)).then(|| Claim::Cast(format!("{name}{}", "*".repeat(count))))
}

/// True where a call of a function begins.
fn is_call(tokens: &[&str], mut at: usize) -> bool {
    at += usize::from(tokens.get(at) == Some(&"::"));
    if tokens.get(at) == Some(&"operator") {
        return true;
    }
    if is_cast_word(tokens.get(at)) || !tokens.get(at).is_some_and(|token| is_name(token)) {
        return false;
    }
    let end = expression(tokens, at).map_or(at + 1, |(_, end)| end);
    tokens.get(end) == Some(&"(")
}

fn assigned(tokens: &[&str], at: usize) -> Option<Claim> {
    let mut depth = 0_i32;
    let mut has_call = false;
    for (next, token) in tokens.iter().enumerate().skip(at + 1) {
        match *token {
            "(" => {
                has_call |= next.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|name| is_name(name));
                depth += 1;
            }
            ")" => depth -= 1,
            "," | ";" if depth == 0 => break,
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    let begin = backwards(tokens, at)?;
    let (mut place, end) = expression(tokens, begin)?;
    // The name of a type precedes the star of a declaration.
    let star = begin.checked_sub(1).filter(|before| tokens.get(*before) == Some(&"*"));
    let is_declared = |star: usize| {
        let before = star.checked_sub(1).and_then(|before| tokens.get(before));
        before.is_some_and(|token| is_name(token) || matches!(*token, "*" | ">"))
    };
    if star.is_some_and(|star| !is_declared(star)) {
        place.stars += 1;
    }
    (has_call && end == at).then_some(Claim::Assigned(place))
}

/// Where the expression in front of a token begins.
fn backwards(tokens: &[&str], end: usize) -> Option<usize> {
    let mut at = end;
    loop {
        at = at.checked_sub(1)?;
        while tokens.get(at) == Some(&"]") {
            let mut depth = 0_usize;
            loop {
                match *tokens.get(at)? {
                    "]" => depth += 1,
                    "[" => depth = depth.checked_sub(1)?,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
                at = at.checked_sub(1)?;
            }
            at = at.checked_sub(1)?;
        }
        if !tokens.get(at).is_some_and(|token| is_name(token)) {
            return None;
        }
        match at.checked_sub(1).and_then(|before| tokens.get(before)) {
            Some(&"->" | &"." | &"::") => at -= 1,
            _ => return Some(at),
        }
    }
}

/// An expression from a token on, and where it ends.
fn expression(tokens: &[&str], at: usize) -> Option<(Expression, usize)> {
    let mut found = Expression { stars: stars(tokens, at), ..Expression::default() };
    found.is_type = tokens.get(at + found.stars).is_some_and(|token| is_qualifier(token));
    let (name, mut at) = type_name(tokens, at + found.stars)?;
    found.name = name;
    loop {
        match tokens.get(at) {
            Some(&"->" | &".") => {
                found.steps.push(Step::Member((*tokens.get(at + 1)?).to_owned()));
                at += 2;
            }
            Some(&"[") => {
                at = closing(tokens, at, "[", "]")? + 1;
                found.steps.push(Step::Element);
            }
            Some(&"*") if matches!(tokens.get(at + 1), Some(&")" | &"*" | &"const")) && found.steps.is_empty() => {
                found.pointers += 1;
                at += 1;
            }
            _ => return Some((found, at)),
        }
    }
}

#[cfg(test)]
mod tests;
